"""For every test, notebooks included: a learner's real progress in ``work/`` is never touched."""

import os
import tempfile

import pytest

os.environ["MINIGRAPH_WORK"] = tempfile.mkdtemp(prefix="minigraph-test-")
# one BLAS thread: on a busy machine two of them wait for each other, many times slower
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_notebook = None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """A fresh ``work/`` for each notebook: what one solves must not show in another one's outputs."""
    global _notebook
    if item.path.suffix == ".ipynb" and item.path != _notebook:
        _notebook = item.path
        os.environ["MINIGRAPH_WORK"] = tempfile.mkdtemp(prefix="minigraph-test-")
