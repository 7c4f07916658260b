"""For every test, notebooks included: a learner's real progress in ``work/`` is never touched."""

import os
import tempfile

os.environ["MINIGRAPH_WORK"] = tempfile.mkdtemp(prefix="minigraph-test-")
# one BLAS thread: on a busy machine two of them wait for each other, many times slower
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
