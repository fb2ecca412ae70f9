"""A callback of Hugging Face's `Trainer` that records a parameter while it trains."""

import importlib
from collections.abc import Callable
from typing import Any

from nets import Recorder

TrainerCallback: Any = importlib.import_module("transformers").TrainerCallback


class RecorderCallback(TrainerCallback):
    """Record a parameter after each step, with what the trainer logs at that step.

    Parameters
    ----------
    parameter : callable
        Function of the model that returns what to record, such as ``lambda m: m.transformer.wte.weight``.
    path : path
        Trajectory file.
    **options
        Other arguments of `nets.Recorder`. The `observables` are names of logged numbers, by default "loss"
        and "eval_loss"; they are NaN where nothing was logged.
    """

    def __init__(
        self,
        parameter: Callable[[Any], Any],
        path: Any,
        *,
        observables: Any = ("loss", "eval_loss"),
        **options: Any,
    ) -> None:
        self.parameter, self.path = parameter, path
        self.options = {"observables": observables, **options}
        self._logged: dict[str, Any] = {}

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        """Begin with the parameter before the first step."""
        self.recorder = Recorder(lambda: self.parameter(model), self.path, **self.options)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """Take in what is logged, which is done after the end of a step."""
        self._logged |= {name: logs[name] for name in self.options["observables"] if name in logs}

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Record the step before, of which everything is known now."""
        if state.global_step > self.recorder.at:
            self.recorder.step(**self._logged)
            self._logged = {}

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Record the last step, and complete the file."""
        self.on_step_begin(args, state, control)
        self.recorder.close()
