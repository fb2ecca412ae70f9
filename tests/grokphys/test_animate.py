"""`grokphys animate`: films and pictures of trajectory files, without a browser."""

import io
import subprocess
import sys
from itertools import pairwise

import imageio_ffmpeg
import numpy as np
import pytest
from PIL import Image

import physics
from grokphys.cli.main import main
from grokphys.explorer import films
from grokphys.explorer.films import Film
from physics.errors import OutputError


@pytest.fixture
def particles(tmp_path):
    path = tmp_path / "particles.h5"
    physics.simulate(physics.ParticleSystem(7), runs=2, steps=12, seed=5, out=path)
    return path


@pytest.fixture
def wide(tmp_path):
    """A run of ten dimensions in which the tokens come to lie on the circle of frequency 3."""
    angle = 2 * np.pi * 3 * np.arange(11) / 11
    circle = np.zeros((11, 10))
    circle[:, 4:6] = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    noise = np.random.default_rng(0).standard_normal((11, 10))
    positions = [(1 - t) * noise + t * 4 * circle for t in np.linspace(0, 0.99, 9)]
    path = tmp_path / "wide.h5"
    physics.Trajectory(np.array(positions)[None], 10 * np.arange(9)).save(path)
    return path


def animate(*arguments):
    return main(["animate", *map(str, arguments)])


def pictures(path):
    with Image.open(path) as film:
        for k in range(film.n_frames):
            film.seek(k)
            yield np.asarray(film.convert("RGB"))


def test_a_film_has_the_frames_size_and_pace_that_were_asked_for(particles, tmp_path, capsys):
    out = tmp_path / "film.gif"
    out.write_text("old")
    options = ["--frames", "4", "--fps", "10", "--size", "333", "--overwrite"]
    assert animate(particles, "--out", out, *options) == 0
    assert f"4 of 13 frames in {out}" in capsys.readouterr().out
    shown = list(pictures(out))
    assert len(shown) == 4
    assert shown[0].shape[1] == 333
    assert all((a != b).any() for a, b in pairwise(shown))
    with Image.open(out) as film:
        assert film.info["duration"] == 100
        assert film.info["loop"] == 0


def test_views_runs_and_frequencies_are_told_apart(particles, wide, tmp_path):
    made = [
        (particles,),
        (particles, "--run", 1),
        (particles, "--frequency", 1),
        (wide,),
        (wide, "--frequency", 2),
        (wide, "--view", "particles"),
    ]
    contents = []
    for n, arguments in enumerate(made):
        assert animate(*arguments, "--out", tmp_path / f"{n}.png", "--size", 300) == 0
        contents.append((tmp_path / f"{n}.png").read_bytes())
    assert len(set(contents)) == len(made)
    assert animate(wide, "--frequency", 3, "--out", tmp_path / "three.png", "--size", 300) == 0
    assert (tmp_path / "three.png").read_bytes() == contents[3], "3 is the strongest"


def curve(frames, shown=-1):
    """A film of one disc, whose color changes and lies in no palette by chance."""

    def draw(figure, frame):
        figure.set_layout_engine("none")
        ax = figure.add_axes((0, 0, 1, 1))
        ax.set(xlim=(0, 1), ylim=(0, 1))
        ax.scatter([(frame + 1) / (frames + 1)], [0.5], s=3000, color=DISCS[frame % len(DISCS)])

    return Film(frames, draw, (3.1, 2.3), shown)


DISCS = ("#2f1436", "#d1603d", "#0b6e99")


def test_areas_keep_their_colors_and_leave_no_trace_of_the_frame_before(tmp_path):
    film, path = curve(6), tmp_path / "film.gif"
    path.write_bytes(films.gif(film, dpi=60))
    for frame, shown in enumerate(pictures(path)):
        middle = shown[69, round(186 * (frame + 1) / 7)]
        wanted = np.frombuffer(bytes.fromhex(DISCS[frame % 3][1:]), np.uint8)
        assert np.abs(middle.astype(int) - wanted).max() <= 4
        Image.open(io.BytesIO(films.png(curve(6, frame), dpi=60))).save(tmp_path / "still.png")
        still = np.asarray(Image.open(tmp_path / "still.png").convert("RGB"), int)
        assert (np.abs(still - shown).max(axis=2) > 8).mean() < 0.02


def test_an_mp4_needs_ffmpeg(monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(OutputError, match="an MP4 needs the program ffmpeg: pip install"):
        films.mp4(curve(2))


def test_an_mp4_has_the_pictures_in_their_order(tmp_path):
    film = curve(4)
    path = tmp_path / "film.mp4"
    path.write_bytes(films.mp4(film, dpi=50, fps=10))
    height, width = 114, 154  # the film has 115 and 155 pixels, and players need an even number
    decode = [imageio_ffmpeg.get_ffmpeg_exe(), "-i", str(path), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    data = subprocess.run(decode, capture_output=True, check=True).stdout
    shown = np.frombuffer(data, np.uint8).reshape(-1, height, width, 3).astype(float)
    drawn = [np.asarray(picture)[:height, :width] for picture in films.pictures(film, range(4), 50)]
    assert len(shown) == 4
    apart = [[np.abs(a - b).mean() for b in drawn] for a in shown]
    assert np.argmin(apart, axis=1).tolist() == [0, 1, 2, 3]
