"""Floors, not circles: a file imports only from below, and `import minigraph` needs NumPy and nothing else."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import minigraph

PACKAGE = Path(minigraph.__file__).parent

# From the ground up. A file or folder imports from lower floors, and within its own folder.
FLOORS = (
    ("errors", "gpu", "doctor"),
    ("types", "search", "greedy", "launch_model", "recordings", "nvrtc", "shim", "peers", "formats", "sparse"),
    ("ops", "scalars", "planners", "timing"),
    ("ir", "dialect"),
    ("text", "access", "compiler"),
    ("attention",),
    ("verify", "freeze", "files", "view", "fusion"),
    ("rebuild", "plan"),
    ("passes", "codegen"),
    ("pipeline", "run_numpy"),
    ("run_plan", "scheduling", "calibrate", "accuracy"),
    ("run_c",),
    ("device",),
    ("run_cupy",),
    ("backends",),
    ("tracing", "drawing"),
    ("models", "command", "random_graphs", "orderless"),
    ("measure", "fusible_graphs"),
    ("fuzz", "teach"),
    ("tolerance",),
    ("check_backends",),
    ("fuzz_backends", "fuzz_layout", "bench_sparse"),
    ("llm_contenders",),
    ("bench_gpu", "bench_llm", "bench_cpu", "bench_memory", "bench_quant"),
    ("bench",),
    ("cli",),
    ("__main__",),
)
FLOOR = {name: number for number, floor in enumerate(FLOORS) for name in floor}
UPWARD = {("ir", "text")}  # a graph's text is its face: Graph.__str__ imports it when it is called

HEAVY = ("matplotlib", "networkx", "graphviz", "graphviz_pure", "cupy", "gguf", "tokenizers", "hypothesis", "pytest", "IPython",
         "minigraph.teach", "minigraph.models", "minigraph.fuzz", "minigraph.cli")  # fmt: skip


def modules() -> dict[str, Path]:
    """Dotted name inside the package -> file; a folder's ``__init__`` is the folder itself, the package's is left out."""
    found = {".".join(path.relative_to(PACKAGE).with_suffix("").parts): path for path in sorted(PACKAGE.rglob("*.py"))}
    return {name.removesuffix(".__init__"): path for name, path in found.items() if name != "__init__"}


def imports(name: str, path: Path, top_level: bool = False) -> set[str]:
    """The modules of the package that a file imports, anywhere in it or only at the top, as dotted names."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    folder = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    found = set()
    for node in tree.body if top_level else ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            if node.level:
                base = folder[:len(folder) - node.level + 1]
            elif (node.module or "").split(".")[0] == "minigraph":
                base = []
            else:
                continue
            inside = (node.module or "").removeprefix("minigraph").strip(".") if not node.level else node.module or ""
            base = base + [part for part in inside.split(".") if part]
            for alias in node.names:
                longer = ".".join([*base, alias.name])
                found.add(longer if longer in MODULES else ".".join(base))
        elif isinstance(node, ast.Import):
            found |= {alias.name.removeprefix("minigraph").strip(".") for alias in node.names
                      if alias.name.split(".")[0] == "minigraph"}
    return found - {"", name}


MODULES = modules()


@pytest.mark.parametrize("name", MODULES)
def test_a_file_imports_from_below(name):
    unit = name.split(".")[0]
    assert unit in FLOOR, f"put {unit} on a floor of the table"
    for other in imports(name, MODULES[name]):
        below = other.split(".")[0]
        assert below == unit or FLOOR[below] < FLOOR[unit] or (unit, below) in UPWARD, f"{name} imports {other}, which is not below it"


def test_no_circles():
    networkx = pytest.importorskip("networkx")
    edges = [(name, other) for name, path in MODULES.items() for other in imports(name, path, top_level=True)]
    assert list(networkx.simple_cycles(networkx.DiGraph(edges))) == []


def test_the_table_has_no_empty_rooms():
    assert {name.split(".")[0] for name in MODULES} == set(FLOOR)


def test_importing_minigraph_imports_little():
    code = f"import sys, minigraph; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PACKAGE.parent)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_nothing_is_evaluated_or_unpickled():
    """Graphs come from files and from learners: the core has no eval, exec, pickle or allow_pickle=True."""
    for name, path in MODULES.items():
        if name.split(".")[0] in ("teach", "command", "doctor", "bench", "models", "cli"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
            assert called not in ("eval", "exec", "__import__"), f"{name}:{node.lineno}"
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                assert isinstance(node.value, ast.Constant) and node.value.value is False, name
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                assert "pickle" not in [alias.name for alias in node.names] + [getattr(node, "module", "")], name
