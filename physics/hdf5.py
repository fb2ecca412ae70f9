"""What HDF5 and the file system leave to us: chunks, dimension scales."""

import zlib
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

CHUNK_BYTES = 2**19
"""Aim of a chunk: half a megabyte."""
PIPELINE = (h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_FLETCHER32)


def chunk_shape(frame_shape: tuple[int, ...], itemsize: int, frames: int) -> tuple[int, ...]:
    """Chunk of about half a megabyte: many small frames, or a part of a large one."""
    frame_bytes = max(int(np.prod(frame_shape)) * itemsize, 1)
    if frame_bytes > 2 * CHUNK_BYTES:
        row_bytes = max(frame_bytes // max(frame_shape[0], 1), 1)
        return (1, max(1, min(CHUNK_BYTES // row_bytes, frame_shape[0])), *frame_shape[1:])
    count = max(CHUNK_BYTES // frame_bytes, 1)
    return (min(count, frames) if frames else count, *frame_shape)


def extend(dataset: h5py.Dataset, values: NDArray[Any]) -> None:
    """Append rows to a dataset."""
    start = len(dataset)
    dataset.resize(start + len(values), axis=0)
    dataset[start:] = values


def append_chunk(dataset: h5py.Dataset, values: NDArray[Any]) -> None:
    """Append rows that are one whole chunk of a dataset with shuffle, gzip and fletcher32.

    The filters are applied here, to the bytes that HDF5's would give: zlib lets other threads run while it
    compresses, HDF5 does not.
    """
    raw = np.ascontiguousarray(values, dataset.dtype)
    shuffled = raw.view(np.uint8).reshape(-1, dataset.dtype.itemsize).T.tobytes()
    packed = zlib.compress(shuffled, dataset.compression_opts)
    packed += fletcher32(packed).to_bytes(4, "little")
    start = len(dataset)
    dataset.resize(start + len(values), axis=0)
    dataset.id.write_direct_chunk((start, *[0] * (dataset.ndim - 1)), packed)


def whole_chunk(dataset: h5py.Dataset, values: NDArray[Any]) -> bool:
    """Whether `values` are what `append_chunk` appends."""
    filters = dataset.id.get_create_plist()
    found = tuple(filters.get_filter(k)[0] for k in range(filters.get_nfilters()))
    return found == PIPELINE and values.shape == dataset.chunks and len(dataset) % len(values) == 0


def fletcher32(data: bytes) -> int:
    """HDF5's checksum of a chunk: sums of big-endian words and of these sums, with the carry added again."""
    words = np.frombuffer(data + bytes(len(data) % 2), ">u2").astype(np.int64)
    sums = int(words.sum()), int(words @ np.arange(len(words), 0, -1))
    low, high = (total % 65535 or (65535 if total else 0) for total in sums)
    return high << 16 | low


def scale(group: h5py.Group, name: str, values: NDArray[Any]) -> h5py.Dataset:
    """Make a dimension scale."""
    dataset = group.create_dataset(name, data=values)
    dataset.make_scale(name)
    return dataset


def attach(dataset: h5py.Dataset, *scales: h5py.Dataset) -> None:
    """Attach one scale to each axis of a dataset."""
    for axis, scale in enumerate(scales):
        dataset.dims[axis].attach_scale(scale)
