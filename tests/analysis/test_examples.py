"""The examples in the docstrings of `analysis` run, and give what they print."""

import doctest
import importlib
import pkgutil

import pytest

import analysis

MODULES = [found.name for found in pkgutil.walk_packages(analysis.__path__, "analysis.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def test_the_doors_for_batches_have_an_example():
    finder = doctest.DocTestFinder(recurse=False)
    for door in (analysis.fit_batch, analysis.circles_of, analysis.signals_of, analysis.frequency_shares):
        assert finder.find(door)[0].examples
