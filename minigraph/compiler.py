"""The C compiler: which one there is, and a cache on disk of what it has built, by content."""

from __future__ import annotations

import contextlib
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
import warnings
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path

from .dialect import C_FLAGS
from .errors import MinigraphError, MinigraphWarning

NAMES = ("cc", "gcc", "clang")
TELL: ContextVar[Callable[[], object]] = ContextVar("TELL", default=lambda: None)  # called before something is built


class CompilerError(MinigraphError):
    """There is no C compiler, it refused generated code, or what it made is of no use here."""


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


@contextlib.contextmanager
def telling(tell: Callable[[], object]) -> Iterator[None]:
    """Call ``tell`` whenever a library is about to be built, which takes seconds, and not found in the cache."""
    token = TELL.set(tell)
    try:
        yield
    finally:
        TELL.reset(token)


@functools.lru_cache(maxsize=None)
def machine() -> str:
    """What built code depends on besides its source: the compiler's version, and this processor's instructions."""
    version = ask([*need_compiler(), "--version"]).stdout.split("\n")[0]
    try:
        flags = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        flags = platform.processor()
    return f"{version} {platform.machine()} {flags}"


def cache_folder() -> Path:
    """``$MINIGRAPH_CACHE``, or the user's cache; where that cannot be written, a folder for this process alone."""
    try:
        folder = Path(os.environ.get("MINIGRAPH_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "minigraph")
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
        return folder.absolute()  # a bare name would be looked for among the system's libraries
    except (OSError, RuntimeError):  # RuntimeError: nobody's home
        return Path(own_folder().name)  # never a common one: anybody could have put a library there


@functools.lru_cache(maxsize=None)
def own_folder() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(prefix="minigraph-")


def build(source: str, threads: bool = False) -> ctypes.CDLL:
    """The shared library of a C source, from the cache or built now. Raises CompilerError with the compiler's words.

    Where the cache cannot keep or give it, it is built for this process alone, with a warning that says why.
    """
    flags = [*C_FLAGS, *["-fopenmp"] * threads]
    path = entry(source, flags)
    try:
        return load(source, flags, path)
    except OSError as error:  # a folder has the entry's name, the disk is full, or nothing on it may be run
        why = reason(error)
    try:
        library = load(source, flags, Path(own_folder().name) / path.name)
    except OSError as error:
        raise CompilerError(f"what `{' '.join(need_compiler())}` built can be used neither in the cache ({why}) nor in a temporary folder"
                            f" ({reason(error)})\n  {advice()}") from error
    warnings.warn(f"the cache cannot keep a library, so every process builds it again: {why}. Remove what is in the way, or set"
                  " MINIGRAPH_CACHE to another folder", MinigraphWarning, stacklevel=2)
    return library


def reason(error: OSError) -> str:
    place = error.filename2 or error.filename  # of a rename, where to; the loader names the file in its text
    return f"{place}: {error.strerror}" if place else str(error)


def entry(source: str, flags: list[str]) -> Path:
    """The cache's place for the library of a source."""
    known = "\0".join([machine(), *need_compiler(), *flags, source])
    key = hashlib.sha256(known.encode(errors="surrogateescape")).hexdigest()[:32]  # a path may be any bytes
    return cache_folder() / f"{key}.so"


def load(source: str, flags: list[str], path: Path) -> ctypes.CDLL:
    """The library in this place, built where there is no whole one. Raises OSError where the place is of no use."""
    if not is_whole(path):
        TELL.get()()
        make(source, flags, path)
    return ctypes.CDLL(str(path))


def is_whole(path: Path) -> bool:
    """Is the library there, and as it was written? Loading a damaged one would end the process."""
    digest = path.with_suffix(".sha256")
    try:  # is_file: to read a pipe would take forever
        return path.is_file() and digest.is_file() and hashlib.sha256(path.read_bytes()).hexdigest().encode() == digest.read_bytes()
    except OSError:
        return False


def make(source: str, flags: list[str], path: Path) -> None:
    """Compile into a folder of our own, then rename: two processes at once get the same file, never half of one.

    Raises CompilerError, and OSError where the file cannot be put there.
    """
    with tempfile.TemporaryDirectory(dir=path.parent, prefix="build-") as folder:
        code, library, digest = (Path(folder) / name for name in ("plan.c", "plan.so", "plan.sha256"))
        code.write_text(source, encoding="utf-8")
        for attempt in ([*flags, "-Wl,-Bsymbolic"], [flag for flag in flags if flag != "-march=native"]):  # not all know these
            command = [*need_compiler(), *attempt, "-shared", "-fPIC", "-o", str(library), str(code), "-lm"]
            done = ask(command)
            if done.returncode == 0 and library.exists():
                break
        else:
            raise CompilerError(refusal(done))
        digest.write_text(hashlib.sha256(library.read_bytes()).hexdigest())
        os.replace(library, path)
        os.replace(digest, path.with_suffix(".sha256"))


def ask(command: list[str]) -> subprocess.CompletedProcess:
    """Run the compiler, which reads nothing but its files. Raises CompilerError where it cannot be started."""
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    except OSError as error:
        raise CompilerError(f"the C compiler `{command[0]}` cannot be started: {error.strerror or error}\n  {advice()}") from error


def refusal(done: subprocess.CompletedProcess) -> str:
    """The compiler's first errors; where it names none, also how it ended and what to try."""
    said = done.stderr.splitlines()
    errors = [line for line in said if "error" in line][:3]
    if errors:
        return "\n  ".join(["the C compiler refused generated code:", *errors])
    ended = f"`{' '.join(need_compiler())}` ended with status {done.returncode}" + (", but wrote no library" if not done.returncode else "")
    return "\n  ".join(["the C compiler refused generated code:", *(said[:3] or ["(it said nothing)"]), ended, advice()])


def advice() -> str:
    unset = "unset CC, which names this compiler; " if os.environ.get("CC") else ""
    return f"{unset}`minigraph doctor` says which compiler there is; everything also runs with backend='numpy'"
