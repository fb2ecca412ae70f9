"""The picture of a force law: its kernels over distance, angle and radius."""

from collections.abc import Mapping

import numpy as np

from analysis.forces.law import Kernel
from analysis.plots.palette import SERIES
from analysis.plots.style import Panels, figure_of, legend_below, panels

AXES = {
    "distance": ("distance of pair sums, in sizes", "repulsion, in units of the fit"),
    "angle": ("angle, in degrees", "alignment, in units of the fit"),
    "radius": ("length of the pair sum, in sizes", "outwards, in units of the fit"),
}

CERTAIN = 0.2
"""Distance or angle below which few pairs lie; the axis of the force is that of the curves beyond."""


def show_kernels(kernels: Mapping[str, Mapping[str, Kernel]], axes: Panels | None = None) -> Panels:
    """Draw the kernels of force laws with their bands, a panel each for distance, angle and radius.

    Parameters
    ----------
    kernels : mapping of str to mapping of str to Kernel
        Kernels of one law or of several, such as the windows of ``ForceLaw.kernels``, by name. Those for
        different classes are dashed.
    axes : ndarray of Axes, optional
        Axes for distance, angle and radius; new ones by default, as many as the laws need.

    Returns
    -------
    ndarray of Axes
        The panels.
    """
    names = [name for name in AXES if any(key.startswith(name) for law in kernels.values() for key in law)]
    if axes is None:
        axes = panels(1, len(names), 3.4, 3.6)[0]
        figure_of(axes[0]).set_layout_engine("constrained")
    for ax, name in zip(axes, names, strict=True):
        low = high = 0.0
        for color, (law, curves) in zip(SERIES * 2, kernels.items(), strict=False):
            for key, curve in curves.items():
                if not key.startswith(name):
                    continue
                place = np.degrees(curve.grid) if name == "angle" else curve.grid
                kind = key.partition(", ")[2]
                label = ", ".join(part for part in (law if len(kernels) > 1 else "", kind) if part) or key
                line = "--" if "diff" in kind else "-"
                ax.plot(place, curve.values, color=color, linestyle=line, label=label)
                ax.fill_between(place, curve.low, curve.high, color=color, alpha=0.2, linewidth=0)
                certain = curve.values[curve.grid >= CERTAIN]
                low, high = min(low, certain.min()), max(high, certain.max())
        ax.axhline(0.0, color="0.6", linewidth=0.7, zorder=0)
        room = 0.15 * (high - low)
        ax.set(xlabel=AXES[name][0], ylabel=AXES[name][1], xlim=(0, None), ylim=(low - room, high + room))
        if name == "angle":
            ax.set_xticks([0, 45, 90, 135, 180])
    legend_below(axes[0], columns=1)
    return axes
