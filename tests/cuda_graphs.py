"""CUDA graphs on a CPU: what a capture records is done again, operation by operation."""

import contextlib

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class RecordedGraph(TorchDispatchMode):
    """The operations of a captured call, done again with the very tensors that they were done with.

    A replay that differs from the call shows what of it is not in its tensors. On CUDA a capture runs
    nothing; here it runs, and the first replay does not.
    """

    def __init__(self):
        super().__init__()
        self._calls = []
        self._done = True

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        self._calls.append((operation, args, kwargs or {}, result))
        return result

    @torch.no_grad()
    def replay(self):
        if self._done:
            self._done = False
            return
        for operation, args, kwargs, result in self._calls:
            again = operation(*args, **kwargs)
            pairs = zip(result, again, strict=True) if isinstance(result, tuple | list) else [(result, again)]
            for old, new in pairs:
                if isinstance(old, torch.Tensor) and old.data_ptr() != new.data_ptr():
                    old.copy_(new)


class Stream:
    """The one order in which a CPU does things."""

    def wait_stream(self, other):
        pass


def recorded_graphs(monkeypatch):
    """Let PyTorch's CUDA graphs and streams be these; the list of graphs, as they are made."""
    made = []

    def graph():
        made.append(RecordedGraph())
        return made[-1]

    monkeypatch.setattr(torch.cuda, "Stream", lambda device: Stream())
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Stream())
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "CUDAGraph", graph)
    monkeypatch.setattr(torch.cuda, "graph", lambda graph, stream: graph)
    return made
