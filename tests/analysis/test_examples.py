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
