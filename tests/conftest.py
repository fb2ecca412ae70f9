import gc
import os
import signal
import subprocess
import sys

import pytest

os.environ.setdefault("MPLBACKEND", "Agg")
# Matrices of tests are small: threads of BLAS would wait for each other longer than they compute.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numba

import nets  # noqa: F401 - before torch, as it decides how PyTorch's threads wait

pytest.register_assert_rewrite("edges")  # so that it shows both sentences
# In the background of a shell it is ignored, and processes would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Importing libraries and collecting tests makes millions of objects, hardly any of which becomes garbage.
gc.disable()


def pytest_collection_finish():
    """Compute with one thread, and keep what the collection made out of each later search for garbage.

    Ensembles of tests are small, and the processes of the suite share the cores: more threads would wait for
    each other longer than they compute.
    """
    numba.set_num_threads(1)  # launches the threads, which sets those of PyTorch too
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    gc.freeze()
    gc.enable()


@pytest.fixture
def all_threads():
    """Give kernels all threads, for tests of what must not depend on their number, and return that."""
    numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
    yield numba.config.NUMBA_NUM_THREADS
    numba.set_num_threads(1)


@pytest.fixture
def python():
    """Run Python code in a fresh interpreter and return the finished process."""

    def run(code, *arguments, check=True, **options):
        return subprocess.run(
            [sys.executable, "-c", code, *map(str, arguments)],
            capture_output=True,
            text=True,
            check=check,
            timeout=120,
            **options,
        )

    return run


@pytest.fixture(scope="session")
def browser():
    """One headless Chromium for all tests; without it they are skipped."""
    from browser import OPTIONS, chromium

    path = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=list(OPTIONS))
        yield started
        started.close()


@pytest.fixture(scope="session")
def explorer(browser):
    """One server of the explorer for all tests of the browser."""
    from browser import Server

    server = Server()
    yield server
    said = server.stop()
    assert "Traceback" not in said, said
