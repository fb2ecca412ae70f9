"""CUDA graphs, which launch the many small kernels of a step at once."""

from collections.abc import Callable

import torch

WARM_UPS = 3
"""Number of steps before the capture, in which libraries allocate what they may not allocate during it."""


class CapturedStep:
    """Takes a step, and after a few repetitions launches all its kernels at once, as a CUDA graph.

    Parameters
    ----------
    device : torch.device
        Device of type "cuda".

    References
    ----------
    "CUDA graphs" in PyTorch's notes on CUDA: warm up on a separate stream, then capture.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device)
        self._warm_ups = WARM_UPS
        self._graph: torch.cuda.CUDAGraph | None = None

    def take(self, step: Callable[[], None]) -> None:
        """Take `step` once, by calling the function or by replaying the kernels that it launched.

        The function must launch the same kernels each time, without waiting for the device. It may only read
        and write tensors of the device that stay at their addresses. Numbers that change from step to step
        must be read from a tensor.
        """
        if self._warm_ups:
            self._warm_ups -= 1
            current = torch.cuda.current_stream(self._device)
            self._stream.wait_stream(current)
            with torch.cuda.stream(self._stream):
                step()
            current.wait_stream(self._stream)
            return
        if self._graph is None:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=self._stream):
                step()  # the kernels are recorded but not run
            self._graph = graph
        self._graph.replay()
