"""View 2: a network in training (Musat, Section 3; Liu et al., Section 2), and particles from its start."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from bokeh.models import CategoricalSlider, ColumnDataSource, LinearColorMapper

from grokphys.explorer import theme
from grokphys.explorer.films.export import Film
from grokphys.explorer.plots.plane import Curves, SumPlot, TokenPlot
from grokphys.explorer.runs import verdicts
from grokphys.explorer.runs.planes import plane_axes, planes
from grokphys.explorer.session import Session
from grokphys.explorer.views import presets
from grokphys.explorer.views.changes import Changes
from grokphys.explorer.views.view import View
from physics.particles.system import ParticleSystem

ATTENTION, ADDITION = "constant attention", "toy addition"
HEIGHT = 258
RATES = [f"{digit * 10.0**-power:.4g}" for power in (4, 3, 2) for digit in (1, 2, 3, 5)] + ["0.1", "0.2"]
PUBLISHED = {
    ATTENTION: {"_tokens": 17, "_dim": 2, "_hidden": 32, "_rate": "0.01", "_decay": 1.0},
    ADDITION: {"_tokens": 10, "_dim": 1, "_hidden": 200, "_rate": "0.001", "_decay": 0.0},
}
"""Sizes and rates of the papers (Musat; Liu et al.), which the view sets when the network is chosen."""
TOY = {"embedding_learning_rate": 0.001, "embedding_weight_decay": 0.0, "train_fraction": 45 / 55}
"""Fixed settings of toy addition: Liu et al. train its embedding at other rates than the decoder."""


class NetworksView(View):
    """The view of a network in training, and of particles that move in step with it.

    It shows tokens and pair sums of both, those of the network over the map of its answers, and curves of
    loss and accuracy.
    """

    slug, name = "networks", "Networks"
    needs = ("grokphys.explorer.runs.networks",)
    terms = (
        *("tokens N", "dimensions D", "hidden units", "pair sum", "learning rate", "weight decay"),
        *("train loss", "train accuracy", "validation accuracy", "circle ratio", "imperfections", "circles"),
        *("alignment fₐ", "particle step"),
    )
    presets = presets.NETWORKS

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._kind = theme.chooser("network", [ATTENTION, ADDITION])
        self._tokens = theme.slider("tokens N", 3, 41, 17)
        self._dim = theme.slider("dimensions D", 1, 16, 2)
        self._hidden = theme.slider("hidden units", 4, 256, 32, 4)
        self._seed = theme.number("seed", 0, 0, theme.LARGEST_SEED)
        self._rate = theme.control(CategoricalSlider, "learning rate", categories=RATES, value="0.01")
        self._decay = theme.slider("weight decay", 0, 5, 1.0, 0.05)
        self._alignment = theme.slider("alignment fₐ", 0, 4, 1.0, 0.05)
        self._ratio = theme.slider("optimizer steps per particle step", 1, 100, 20)
        self._plane = theme.chooser("plane", planes(2))
        self._numbers = theme.chooser("show classes as", ["markers", "numbers"])

        self._embedding = TokenPlot("Network: embedding", height=HEIGHT)
        self._sums = SumPlot("Network: pair sums over its classifier", height=HEIGHT)
        self._particles = TokenPlot("Particles from the same start", height=HEIGHT)
        self._particle_sums = SumPlot("Particles: pair sums", height=HEIGHT)
        self._loss = Curves("Loss", ["train", "validation"], height=HEIGHT, y_axis_type="log")
        self._accuracy = Curves("Accuracy", ["train", "validation"], height=HEIGHT, y_range=(-0.04, 1.04))
        self.figures = {
            "embedding": self._embedding.figure,
            "embedding sums": self._sums.figure,
            "particles": self._particles.figure,
            "particles sums": self._particle_sums.figure,
            "loss": self._loss.figure,
            "accuracy": self._accuracy.figure,
        }
        self._map = ColumnDataSource({"image": [], "x": [], "y": [], "dw": [], "dh": []})
        self._colors = LinearColorMapper(palette=["#ffffff"], low=-0.5, high=0.5)
        seen = self._sums.figure.image(
            "image", "x", "y", "dw", "dh", source=self._map, color_mapper=self._colors, global_alpha=0.55
        )
        seen.level = "underlay"
        for name in ("inner_width", "inner_height"):  # the map is of what the page shows
            self._sums.figure.on_change(name, lambda _name, _old, _new: session.soon(self.show))
        self._fresh = True
        self._particle_axes: Any = None
        self._shown: list[Any] = [None, None]
        live = {"rate": self._rate, "decay": self._decay, "alignment": self._alignment, "ratio": self._ratio}
        self.changes = Changes(**live)
        self._run = self._begin()
        self._connect(*live.values())
        self.hold(
            kind=self._kind,
            tokens=self._tokens,
            dim=self._dim,
            hidden=self._hidden,
            seed=self._seed,
            rate=self._rate,
            decay=self._decay,
            alignment=self._alignment,
            ratio=self._ratio,
            plane=self._plane,
            numbers=self._numbers,
        )

    def panel(self) -> Any:
        """Return controls, and the network above the particles, with curves at the right."""
        controls = [
            theme.heading("Network", terms=("tokens N", "dimensions D", "hidden units")),
            *(self._kind, self._tokens, self._dim, self._hidden, self._seed),
            theme.heading("Optimizer (AdamW)", terms=("learning rate", "weight decay")),
            *(self._rate, self._decay),
            theme.heading("Particles", terms=("alignment fₐ", "particle step")),
            *(self._alignment, self._ratio),
            theme.heading("Display", "Hollow marks are held-out pairs.", terms=("plane", "pair sum")),
            *(self._plane, self._numbers),
        ]
        plots = (
            *(self._embedding, self._sums, self._loss),
            *(self._particles, self._particle_sums, self._accuracy),
        )
        return theme.stage(controls, theme.grid(*(theme.card(plot.figure) for plot in plots), columns=3))

    def advance(self, steps: int) -> None:
        """Continue the training by `steps` steps of the optimizer, and let the particles follow."""
        self._run.advance(steps, theme.bounds(self._sums.figure))

    def show(self, *, whole: bool = True) -> None:
        """Move tokens and pair sums, and draw the map again; curves change only with complete updates."""
        run = self._run
        task = run.model.task
        pairs = np.asarray(task.inputs)
        sets = (run.training.embeddings[0].astype(np.float64), run.particles.positions)
        if self._fresh:
            run.plane = self._plane.value
            run.look(None)
        plots = ((self._embedding, self._sums), (self._particles, self._particle_sums))
        for k, (E, (tokens, sums)) in enumerate(zip(sets, plots, strict=True)):
            if not self._fresh and np.array_equal(E, self._shown[k]):
                continue  # particles rest during most steps of the network
            self._shown[k] = E
            if k:  # the network run keeps the axes of its embedding, which the map needs
                self._particle_axes = plane_axes(E, self._plane.value, self._particle_axes)
            points = E @ (self._particle_axes if k else run.axes).T
            added = points[pairs].sum(axis=1)
            if self._fresh:
                tokens.begin(points)
                sums.begin(added, pairs, task.labels, run.classes, run.held_out)
            else:
                tokens.move(points)
                sums.move(added)
        if self._fresh:
            colors = theme.class_colors(run.classes)
            self._colors.update(palette=colors, high=run.classes - 0.5)
        bounds = theme.bounds(self._sums.figure)
        if self._fresh or bounds != run.map_bounds:  # the figure has zoomed
            run.look_again(bounds)
        self._fresh = False
        self._show_map()
        if whole:
            history = run.history
            for curves, what in ((self._loss, "loss"), (self._accuracy, "accuracy")):
                parts = {part: history[f"{part}_{what}"] for part in ("train", "validation")}
                curves.show(history.steps, **parts)

    def reset(self) -> None:
        """Return network and particles to step 0, with the same initial weights and the current rates."""
        self.changes.clear()
        self._run.reset()
        self.forget()

    def forget(self) -> None:
        """Remove the trails that lead from earlier frames to the present one."""
        self._fresh = True

    def status(self) -> dict[str, str]:
        """Return steps, training loss, accuracies, and measures of the shape, as texts by their names."""
        last = self._run.history.last
        found, _ = self._run.shape
        measures = {}
        if found == "circles":
            measures["circles"] = " ".join(map(str, self._run.circles)) or "none"
        elif found != "grid" and self._dim.value > 1:
            measures["circle ratio"] = f"{last['circle_ratio']:.3f}"
        if found in ("grid", ""):
            measures["imperfections"] = str(last["imperfections"])
        return {
            "step": str(self._run.step),
            "train loss": f"{last['train_loss']:.4f}",
            "train accuracy": f"{last['train_accuracy']:.3f}",
            "validation accuracy": f"{last['validation_accuracy']:.3f}",
            **measures,
            "particle step": str(self._run.particles.step),
        }

    def verdict(self) -> str:
        """Return sentences on what the network has learned, and on the shape of its embedding."""
        run, last = self._run, self._run.history.last
        train, held_out = float(last["train_accuracy"]), float(last["validation_accuracy"])
        partly = run.partly is not None
        learned = verdicts.learning(run.memorized, run.generalized, train, held_out, partly=partly)
        return f"{learned} {run.shape[1]}"

    def state(self) -> dict[str, Any]:
        """Return the widgets' state with the number of steps, if there are any."""
        return {**super().state(), **({"step": self._run.step} if self._run.step else {})}

    def offer(self) -> None:
        """Offer the planes of the embedding's space."""
        self.offer_planes(self._plane, self._dim.value, cyclic=self._kind.value == ATTENTION)

    def renew(self, state: Mapping[str, Any]) -> None:
        """Start again with the network that the widgets describe, and with the changes of `state`."""
        self._as_numbers(self._numbers.value == "numbers")
        self._renew()
        self.changes.read(state)
        self.apply(self.changes.first)

    def film(self) -> Film:
        """Return a `Film` with the network above and the particles below."""
        from grokphys.explorer.films.network import network_film

        return network_film(self._run, self._plane.value)

    # -- interaction ------------------------------------------------------------------------------

    def _connect(self, *live: Any) -> None:
        self.connect(lambda _: self._renew(), self._tokens, self._dim, self._hidden, self._seed)
        self.connect(self._other_kind, self._kind)
        self.connect(lambda _: self._change(), *live)
        self.connect(lambda _: self._look(), self._plane)
        self.connect(lambda new: self._as_numbers(new == "numbers"), self._numbers)

    def _begin(self) -> Any:
        from grokphys.explorer.runs.networks import NetworkRun

        settings = {} if self._kind.value == ATTENTION else TOY
        rates, law = (float(self._rate.value), self._decay.value), self._law(self._alignment.value)
        return NetworkRun(self._model(), self._seed.value, *rates, law, self._ratio.value, **settings)

    def _model(self) -> Any:
        import nets

        tokens, dim, hidden = self._tokens.value, self._dim.value, self._hidden.value
        if self._kind.value == ATTENTION:
            return nets.ConstantAttention(tokens, dim, hidden)
        return nets.ToyAddition(tokens, dim, (hidden, hidden))

    def _law(self, alignment: float) -> ParticleSystem:
        tokens = self._tokens.value
        modulus = None if self._kind.value == ATTENTION else 2 * tokens - 1  # above all sums: plain addition
        return ParticleSystem(tokens, self._dim.value, alignment=alignment, modulus=modulus)

    def _change(self) -> None:
        """Let the run continue with the rates, the law and the ratio of the widgets, and note the change."""
        self.apply(self.changes.values)
        self.changes.note(self._run.step)

    def apply(self, values: Mapping[str, Any]) -> None:
        """Let the run continue with the rates, the law and the ratio of some values."""
        self._run.change(float(values["rate"]), values["decay"])
        self._run.change_law(self._law(values["alignment"]))
        self._run.ratio = values["ratio"]

    def _renew(self) -> None:
        """Start the network that the widgets describe."""
        self.changes.clear()
        self._run = self._begin()
        self.offer()
        self._fresh = True
        self.show()

    def _other_kind(self, kind: str) -> None:
        """Change to the other kind of network, with the sizes and rates of its paper."""
        with self.filling():
            for name, value in PUBLISHED[kind].items():
                getattr(self, name).value = value
        self._renew()

    def _look(self) -> None:
        self._fresh = True
        self.show()

    def _as_numbers(self, numbers: bool) -> None:
        self._sums.show_numbers(numbers)
        self._particle_sums.show_numbers(numbers)

    def _show_map(self) -> None:
        seen = self._run.map
        if seen is None:
            self._map.data = {"image": [], "x": [], "y": [], "dw": [], "dh": []}
            return
        left, right, bottom, top = self._run.map_bounds
        size = {"dw": [right - left], "dh": [top - bottom]}
        self._map.data = {"image": [seen], "x": [left], "y": [bottom], **size}
