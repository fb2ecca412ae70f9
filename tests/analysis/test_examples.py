"""The examples in the docstrings of `analysis` and `nets` run, and give what they print."""

import doctest
import importlib
import pkgutil

import pytest

import analysis
import nets

MODULES = [
    found.name
    for package in (analysis, nets)
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def test_the_doors_for_batches_have_an_example():
    finder = doctest.DocTestFinder(recurse=False)
    for door in (
        analysis.fit_batch,
        analysis.circles_of,
        analysis.fourier_signals,
    ):
        assert finder.find(door)[0].examples
