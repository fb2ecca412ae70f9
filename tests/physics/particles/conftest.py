import pytest


@pytest.fixture(autouse=True)
def as_on_several_cores(all_threads):
    """The number of threads decides whether kernels share runs or rows, so these tests have all of them."""
