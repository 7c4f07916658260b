"""The C compiler: which one there is, and a cache on disk of what it has built, by content."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from .dialect import C_FLAGS
from .errors import MinigraphError

NAMES = ("cc", "gcc", "clang")


class CompilerError(MinigraphError):
    """There is no C compiler, or it refused generated code."""


@functools.lru_cache(maxsize=None)
def find_compiler() -> tuple[str, ...] | None:
    """The command of a C compiler: ``$CC``, cc, gcc, clang, or the ``ziglang`` wheel; None where there is none."""
    wanted = os.environ.get("CC", "").split()
    if wanted and shutil.which(wanted[0]):
        return tuple(wanted)
    for name in NAMES:
        if path := shutil.which(name):
            return (path,)
    if importlib.util.find_spec("ziglang"):
        return sys.executable, "-m", "ziglang", "cc"
    return None


def need_compiler() -> tuple[str, ...]:
    command = find_compiler()
    if command is None:
        raise CompilerError("there is no C compiler on this machine: install gcc or clang, or `pip install ziglang`;"
                            " everything also runs with backend='numpy'")
    return command


@functools.lru_cache(maxsize=None)
def machine() -> str:
    """What built code depends on besides its source: the compiler's version, and this processor's instructions."""
    version = subprocess.run([*need_compiler(), "--version"], capture_output=True, text=True).stdout.split("\n")[0]
    try:
        flags = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        flags = platform.processor()
    return f"{version} {platform.machine()} {flags}"


def cache_folder() -> Path:
    """``$MINIGRAPH_CACHE``, or the user's cache; where that cannot be written, a folder for this process alone."""
    folder = Path(os.environ.get("MINIGRAPH_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "minigraph")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
        return folder
    except OSError:
        return Path(own_folder().name)  # never a common one: anybody could have put a library there


@functools.lru_cache(maxsize=None)
def own_folder() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(prefix="minigraph-")


def build(source: str, threads: bool = False) -> ctypes.CDLL:
    """The shared library of a C source, from the cache or built now. Raises CompilerError with the compiler's words."""
    flags = [*C_FLAGS, *["-fopenmp"] * threads]
    key = hashlib.sha256("\0".join([machine(), *need_compiler(), *flags, source]).encode()).hexdigest()[:32]
    path = cache_folder() / f"{key}.so"
    if not is_whole(path):
        make(source, flags, path)
    return ctypes.CDLL(str(path))


def is_whole(path: Path) -> bool:
    """Is the library there, and as it was written? Loading a damaged one would end the process."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() == path.with_suffix(".sha256").read_text()
    except OSError:
        return False


def make(source: str, flags: list[str], path: Path) -> None:
    """Compile into a folder of our own, then rename: two processes at once get the same file, never half of one."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix="build-") as folder:
        code, library, digest = (Path(folder) / name for name in ("plan.c", "plan.so", "plan.sha256"))
        code.write_text(source, encoding="utf-8")
        for attempt in ([*flags, "-Wl,-Bsymbolic"], [flag for flag in flags if flag != "-march=native"]):  # not all know these
            command = [*need_compiler(), *attempt, "-shared", "-fPIC", "-o", str(library), str(code), "-lm"]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode == 0 and library.exists():
                break
        else:
            first = [line for line in done.stderr.splitlines() if "error" in line][:3]
            raise CompilerError("the C compiler refused generated code:\n  " + "\n  ".join(first or done.stderr.splitlines()[:3]))
        digest.write_text(hashlib.sha256(library.read_bytes()).hexdigest())
        os.replace(library, path)
        os.replace(digest, path.with_suffix(".sha256"))
