"""Make the film of the README, docs/pictures/film.gif: a network and particles from one start.

On the left is the first network of ``nets.train(nets.ConstantAttention(), weight_decay=1.0, seed=0)``. On the
right are particles that start at its untrained embedding. The lower row shows the sums of all pairs over a
classifier, which for the particles is the class of the nearest sum. Every frame is a recorded step.
"""

from io import BytesIO
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from PIL import Image
from scipy.spatial import cKDTree

import analysis
import nets
import physics
from analysis.plots.embeddings import plane
from analysis.plots.palette import class_colors, ink_on
from analysis.plots.style import STYLE

FRAMES, HOLD = 64, 2500
"""Number of frames, and how many milliseconds the last of them stays."""
FINE, PALE = 220, 0.45
"""Points on a side of the maps, and how much of its color a region keeps."""


def course(frames: int = FRAMES) -> tuple[physics.Trajectory, physics.Trajectory]:
    """Return a network and particles from its start, at as many frames, denser at the beginning."""
    pace = np.linspace(0, 1, frames)
    steps = np.unique(np.round(600 * pace**2.2 + frames * pace).astype(int))
    network = nets.train(
        nets.ConstantAttention(),
        steps=steps[-1],
        weight_decay=1.0,
        seed=0,
        record=steps.tolist(),
        observables=("layers",),
    )
    system = physics.ParticleSystem(alignment=2.0)
    particles = physics.simulate(system, initial=network.initial, steps=len(network.steps) - 1)
    return network, particles


def film(path: Path) -> Path:
    """Draw all frames with one set of artists, and write them with one palette."""
    network, particles = course()
    task = nets.ConstantAttention().task
    pairs, labels = task.inputs, task.labels
    colors = class_colors(17)
    regions = ListedColormap(1 - PALE * (1 - colors[:, :3]))
    inks = [ink_on(color) for color in colors]
    signals = analysis.fourier_signals(network.final[0])
    frequency = signals.frequency[signals.argmax()].item()
    around = np.arange(18) * pow(frequency, -1, 17) % 17  # as the tokens lie on the circle

    with mpl.rc_context(fname=STYLE):
        figure = Figure(figsize=(7.2, 7.8), dpi=90, layout="none")
        axes = figure.subplots(2, 2)
        figure.subplots_adjust(left=0.015, right=0.985, bottom=0.01, top=0.955, wspace=0.04, hspace=0.09)
    chains, dots, numbers, maps, sums = [], [], [], [], []
    for upper, lower in axes.T:
        chains.append(upper.plot([], [], color="#bbbbbb", linewidth=1.0, zorder=1)[0])
        dots.append(
            upper.scatter(*np.zeros((2, 17)), s=250, c=colors, edgecolors="white", linewidths=0.8, zorder=2)
        )
        looks = {"ha": "center", "va": "center_baseline", "fontsize": 8, "zorder": 3}
        numbers.append([upper.text(0, 0, str(token), color=ink, **looks) for token, ink in enumerate(inks)])
        maps.append(lower.imshow(np.zeros((FINE, FINE)), cmap=regions, vmin=-0.5, vmax=16.5, origin="lower"))
        maps[-1].set_interpolation("nearest")
        empty = np.zeros((2, len(labels)))
        sums.append(lower.scatter(*empty, s=24, c=colors[labels], edgecolors="white", linewidths=0.6))
        for ax in (upper, lower):
            ax.set(xticks=[], yticks=[], aspect="equal")
            ax.spines[:].set(visible=True, color="#cccccc")
    for ax, title in zip(
        axes[1],
        ("pair sums, over the network's answer", "pair sums, over the class of the nearest"),
        strict=True,
    ):
        ax.set_title(title, fontsize=10.5)

    pictures = []
    for frame, step in enumerate(network.steps):
        axes[0, 0].set_title(f"network learning a + b mod 17, step {step}", fontsize=10.5)
        axes[0, 1].set_title(f"particles from the same start, step {particles.steps[frame]}", fontsize=10.5)
        alive = nets.networks(network, frame)
        for column, points in enumerate((network.positions[0, frame], particles.positions[0, frame])):
            points = points - points.mean(0)
            reach = 1.18 * np.abs(points).max()
            dots[column].set_offsets(points)
            chains[column].set_data(*points[around].T)
            for text, place in zip(numbers[column], points, strict=True):
                text.set_position(place)
            axes[0, column].set(xlim=(-reach, reach), ylim=(-reach, reach))
            placed = (points + network.positions[0, frame].mean(0) if column == 0 else points)[pairs].sum(1)
            grid, (left, right, low, high) = plane(placed, resolution=FINE, margin=0.06)
            seen = alive.classify(grid)[0] if column == 0 else labels[cKDTree(placed).query(grid)[1]]
            maps[column].set_data(seen.reshape(FINE, FINE))
            maps[column].set_extent((left, right, low, high))
            sums[column].set_offsets(placed)
            axes[1, column].set(xlim=(left, right), ylim=(low, high))
        stream = BytesIO()
        figure.savefig(stream, format="png", dpi=90)
        pictures.append(Image.open(stream).convert("RGB"))
    return write_gif(path, pictures)


def write_gif(path: Path, pictures: list[Image.Image]) -> Path:
    """Write pictures as a GIF whose frames share one palette, chosen from all of them."""
    few = pictures[:: max(1, len(pictures) // 8)] + pictures[-1:]
    strip = Image.new("RGB", (pictures[0].width, pictures[0].height * len(few)))
    for k, picture in enumerate(few):
        strip.paste(picture, (0, k * picture.height))
    palette = strip.quantize(96, method=Image.Quantize.MEDIANCUT, kmeans=2)
    frames = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    colors = np.array(palette.getpalette()).reshape(-1, 3)
    colors[(colors > 244).all(1)] = 255  # the page stays white
    for frame in frames:
        frame.putpalette(colors.ravel().tolist())
    times = [600] + [90] * (len(frames) - 2) + [HOLD]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=times, loop=0, optimize=False)
    return path
