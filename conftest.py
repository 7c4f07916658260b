"""For every test, notebooks included: a learner's real progress in ``work/`` is never touched."""

import os
import tempfile

os.environ["MINIGRAPH_WORK"] = tempfile.mkdtemp(prefix="minigraph-test-")
