"""A callback of Lightning that records a parameter while its `Trainer` trains."""

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from typing import Any

from nets import Recorder

NAME = "lightning.pytorch" if importlib.util.find_spec("lightning") else "pytorch_lightning"
Callback: Any = importlib.import_module(NAME).Callback


class RecorderCallback(Callback):
    """Record a parameter after each step of the optimizer, with the loss of the step.

    Parameters
    ----------
    parameter : callable
        Function of the module that returns what to record, such as ``lambda module: module.model.W_E``.
    path : path
        Trajectory file.
    **options
        Other arguments of `nets.Recorder`. Metrics that `observables` names, such as ``["val_loss"]``, are
        recorded at the step after they were logged by a validation.
    """

    def __init__(self, parameter: Callable[[Any], Any], path: Any, **options: Any) -> None:
        super().__init__()
        self.parameter, self.path, self.options = parameter, path, options
        self._measured: dict[str, Any] = {}

    def on_train_start(self, trainer: Any, module: Any) -> None:
        """Begin with the parameter before the first step."""
        self.recorder = Recorder(lambda: self.parameter(module), self.path, **self.options)

    def on_validation_end(self, trainer: Any, module: Any) -> None:
        """Take in what the validation has measured."""
        metrics = trainer.callback_metrics
        self._measured = {
            name: metrics[name] for name in self.options.get("observables", ()) if name in metrics
        }

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, *_: Any) -> None:
        """Record a step, unless gradients are only accumulated."""
        if trainer.global_step > self.recorder.at:
            loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
            self.recorder.step(loss, **self._measured)
            self._measured = {}

    def on_train_end(self, trainer: Any, module: Any) -> None:
        """Complete the file."""
        self.recorder.close()

    def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:
        """Keep the frames so far as an unfinished file."""
        self.recorder.__exit__(type(exception), exception, None)
