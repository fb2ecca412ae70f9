"""The public names of analysis: those of the guide at the top, the others in its subpackages."""

import importlib

import pytest

import analysis

PACKAGES = ("circles", "laws", "comparison", "phases", "stats")


def test_names_are_few_and_all_of_them_are_found():
    assert len(dir(analysis)) <= 45
    assert set(dir(analysis)) == set(analysis.__all__)
    for package in PACKAGES:
        for name in getattr(analysis, package).__all__:
            assert getattr(analysis, name) is getattr(getattr(analysis, package), name)
    with pytest.raises(AttributeError):
        _ = analysis.fourier_signal
    importlib.import_module("analysis.comparison.motion")

    assert callable(analysis.compare), "a function and no package"
