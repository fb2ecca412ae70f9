"""A network in training as a film: embedding, pair sums over the classifier and curves; particles below."""

from typing import TYPE_CHECKING, Any

import numpy as np

from grokphys.explorer.films import parts
from grokphys.explorer.films.export import Film, Move
from grokphys.explorer.runs.networks import NetworkRun
from grokphys.explorer.runs.planes import plane_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def network_film(run: NetworkRun, plane: str = "axes 1, 2") -> Film:
    """Return a film of a network above and of its particles below.

    It has a frame for each kept frame of the run, and shows tokens, pair sums, losses and accuracies. If the
    plane has kept its axes, the pair sums of the network lie over the map of its answers.

    Parameters
    ----------
    run : NetworkRun
        The run; the film owns a copy of its data.
    plane : str, default "axes 1, 2"
        Name of the plane, one of `planes.planes`; the last frame determines its axes.
    """
    frames, task, held_out, count = run.history.frames(), run.model.task, run.held_out, run.classes
    pairs, labels = np.asarray(task.inputs), np.asarray(task.labels)
    steps = np.array([step for step, _ in frames])
    kept = [dict(values) for _, values in frames]  # the run may map its last frame again during the drawing
    axes = {name: plane_axes(kept[-1][name], plane) for name in ("embedding", "particles")}
    paths = {name: np.array([values[name] @ axes[name].T for values in kept]) for name in axes}
    # A map belongs to the axes of its frame; if these differ from the last ones, no map is drawn.
    mapped = all(np.allclose(values.get("axes", axes["embedding"]), axes["embedding"]) for values in kept)
    words = {
        "embedding": lambda frame: f"network, step {steps[frame]}",
        "particles": lambda frame: f"particles, step {kept[frame]['particle_step']}",
    }

    def begin(figure: "Figure") -> Move:
        from analysis.plots.palette import FIRST, SECOND

        cells = figure.subplots(2, 3)
        moves: list[Move] = []
        for (name, path), (left, right, _) in zip(paths.items(), cells, strict=True):
            side = parts.extent(path)
            parts.plane(left, side, label=name)
            parts.plane(right, 2 * side, label=f"{name} sums")
            right.set_title("pair sums, by class")

            def added(frame: int, path: np.ndarray = path) -> np.ndarray:
                return path[frame][pairs].sum(axis=1)

            moves += [parts.title(left, words[name]), parts.tokens(left, path)]
            if mapped and name == "embedding":
                moves.append(_map(right, kept, count))
            moves.append(parts.sums(right, added, labels, count, held_out))
        for what, ax in zip(("loss", "accuracy"), cells[:, 2], strict=True):
            for part, style, color in (("train", "-", FIRST), ("validation", "--", SECOND)):
                curve = np.array([values[f"{part}_{what}"] for values in kept])
                moves.append(parts.grown(ax, steps, curve, color, linestyle=style, label=part))
            ax.set(title=what, xlabel="step", yscale="log" if what == "loss" else "linear", label=what)
            if what == "loss":
                parts.plain_ticks(ax.yaxis)
            parts.legend(ax)
        return parts.together(*moves)

    return Film(len(frames), begin, (10.5, 6.4))


def _map(ax: "Axes", kept: list[dict[str, np.ndarray]], count: int) -> Move:
    """Draw the map of the classifier, and let the axes show no more than the map covers.

    Axes keep their limits if `Film.limits` has set them, as for a picture of the screen.
    """
    from matplotlib.colors import ListedColormap

    from analysis.plots.palette import class_colors

    limits = own = ax.get_xlim(), ax.get_ylim()
    look: Any = {"vmin": -0.5, "vmax": count - 0.5, "alpha": 0.55, "interpolation": "nearest"}
    shades = ListedColormap(class_colors(count))
    seen = parts.moving(ax.imshow(np.zeros((2, 2)), cmap=shades, origin="lower", **look))
    ax.set(xlim=limits[0], ylim=limits[1])

    def move(frame: int) -> None:
        nonlocal own
        seen.set_visible("map" in kept[frame])
        if "map" in kept[frame]:
            shown = ax.get_xlim(), ax.get_ylim()
            left, right, bottom, top = map(float, kept[frame]["bounds"])
            seen.set_data(kept[frame]["map"])
            seen.set_extent((left, right, bottom, top))  # which the axes take for their limits
            if shown == own:
                side = min(right, top)
                shown = own = (-side, side), (-side, side)
            ax.set(xlim=shown[0], ylim=shown[1])

    return move
