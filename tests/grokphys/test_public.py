"""What the application gives to scripts, and the ways to start it."""

import doctest
import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

import analysis
import grokphys
import nets
import physics
from nets.engines import threads
from physics.errors import InputError


def test_training_by_fused_kernels_does_without_pytorch(python):
    code = (
        "import sys, nets; nets.train(nets.TwoLayer(5, 4), steps=2, device='cpu', observables=['layers'])\n"
        "print('torch' in sys.modules, nets.Recorder.__module__, 'torch' in sys.modules, *dir(nets))"
    )
    before, recorder, after, *names = python(code).stdout.split()
    assert (before, recorder, after) == ("False", "nets.recorder", "True")
    assert set(nets.__all__) <= set(names)


@pytest.mark.parametrize("setting", [{}, {"OMP_WAIT_POLICY": "active"}])
def test_threads_of_pytorch_do_not_spin_for_long_unless_the_user_wants_it(python, setting):
    shown = python(
        "import nets, torch, os; print(os.environ.get('OMP_WAIT_POLICY'))",
        env={**os.environ, "OMP_DISPLAY_ENV": "verbose", **setting},
    )
    spins = [int(count) for count in re.findall(r"GOMP_SPINCOUNT = '(\d+)'", shown.stderr)]
    if not spins:
        pytest.skip("this PyTorch has another OpenMP than GNU's")
    assert (max(spins) > 10_000) is bool(setting)
    assert shown.stdout.strip() == setting.get("OMP_WAIT_POLICY", "passive")


def test_a_driver_alone_makes_training_ask_pytorch_for_cuda(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(threads, "ROCM", Path("/nowhere"))

    def absent(library):
        raise OSError

    monkeypatch.setattr(threads.ctypes, "CDLL", absent)
    assert not threads.cuda_is_available()
    assert "torch" not in sys.modules
    asked = types.SimpleNamespace(cuda=types.SimpleNamespace(is_available=lambda: True))
    monkeypatch.setattr(threads.ctypes, "CDLL", lambda library: library)
    monkeypatch.setattr(threads, "import_module", lambda name: asked)
    assert threads.cuda_is_available()


@pytest.mark.parametrize(
    ("hiding", "package"),
    [("analysis/__init__.py", "physics"), ("physics.py", "analysis"), ("nets.py", "grokphys.cli.main")],
)
def test_a_file_that_hides_a_package_is_named_at_the_import(tmp_path, python, hiding, package):
    (tmp_path / hiding).parent.mkdir(exist_ok=True)
    (tmp_path / hiding).touch()
    said = python(f"import {package}", cwd=tmp_path, check=False)
    assert said.stderr.splitlines()[-1].startswith(f"ImportError: {tmp_path / hiding} hides the package")


def test_a_name_that_is_also_a_folder_stays_the_name(python):
    code = "import analysis, analysis.comparison.motion; print(type(analysis.compare).__name__)"
    assert python(code).stdout == "function\n"


@pytest.mark.parametrize("words", [["--help"], ["info", "example:ding"]])
def test_what_only_reads_does_not_wait_for_pytorch(python, words):
    code = (
        "import atexit, sys\nfrom grokphys.cli.main import main\n"
        "atexit.register(lambda: print({'torch'} & set(sys.modules)))\nmain(sys.argv[1:])"
    )
    assert python(code, *words).stdout.splitlines()[-1] == "set()"


@pytest.mark.parametrize("package", [physics, nets, analysis, grokphys], ids=lambda one: one.__name__)
def test_every_public_name_is_there(package):
    assert set(package.__all__) <= set(dir(package))
    for name in package.__all__:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="attribute '?simulated"):
        _ = package.simulated


@pytest.mark.parametrize("package", [physics, nets, analysis, grokphys], ids=lambda one: one.__name__)
def test_public_functions_explain_their_arguments_and_their_result(package):
    functions = {name: getattr(package, name) for name in package.__all__}
    for name, function in functions.items():
        if inspect.isfunction(function):
            signature, text = inspect.signature(function), inspect.getdoc(function)
            assert "\nParameters\n---" in text or not signature.parameters, name
            assert "\nReturns\n---" in text or signature.return_annotation in (None, "None"), name


def test_every_function_and_class_of_physics_has_an_example():
    assert not {name for name in physics.__all__ if ">>> " not in inspect.getdoc(getattr(physics, name))}


@pytest.mark.parametrize(
    "name", ["physics", *(found.name for found in pkgutil.walk_packages(physics.__path__, "physics."))]
)
def test_the_examples_of_physics_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_the_example_of_a_phase_diagram():
    from grokphys import phases

    assert doctest.testmod(phases).attempted >= 3
    assert doctest.testmod(phases).failed == 0


@pytest.mark.parametrize("x", ["learning_rate", ("learning_rate", 1e-3), 3])
def test_an_axis_that_is_none_is_refused(x):
    import nets

    with pytest.raises(InputError, match=r"x must be \(name, low, high\) or an Axis, got"):
        grokphys.phase_diagram_of_networks(nets.ToyAddition(), x, ("weight_decay", 0.0, 1.0))


def test_the_package_runs_as_the_command_does():
    started = [sys.executable, "-m", "grokphys", "--version"]
    done = subprocess.run(started, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.startswith("grokphys ")
