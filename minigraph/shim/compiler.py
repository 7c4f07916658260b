"""Find g++ and build a CUDA source into a library, once for each text."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from .kernels import FILE, Kernel, ShimError, parse, translate
from .run import Module

# Without optimizing: for a source of many kernels g++ takes less than half the time, and most runs are short.
FLAGS = (
    "-x", "c++", "-std=c++20", "-O0", "-shared", "-fPIC", "-pipe",
    "-ffp-contract=off", "-fno-math-errno", "-fwrapv", "-fno-strict-aliasing", "-fno-exceptions", "-fno-rtti",
    "-fno-asynchronous-unwind-tables", "-fvisibility=hidden",
    "-U_FORTIFY_SOURCE",  # its longjmp refuses to leave one stack for another
    "-Werror=frame-larger-than=32768",  # a fiber's stack has 64 KiB
    "-fmax-errors=5",
)  # fmt: skip


def find() -> str | None:
    """The C++ compiler here, or None: CXX, g++ or clang++, on Linux only."""
    if not sys.platform.startswith("linux"):
        return None  # the sections of shared memory are ELF's
    return next(filter(None, map(shutil.which, filter(None, (os.environ.get("CXX"), "g++", "clang++")))), None)


def why_not() -> str:
    """One sentence on why CUDA sources cannot run on this CPU and what to do; empty where they can."""
    if find():
        return ""
    if not sys.platform.startswith("linux"):
        return "CUDA sources run on the CPU on Linux only; on Windows use WSL."
    return "Running CUDA sources on the CPU takes g++, which is not installed: install g++ from your system."


def build(source: str, folder: str | os.PathLike | None = None) -> Module:
    """Compile a CUDA source of any number of kernels; the same text gives the same Module again.

    The library lives as long as the process, or for longer in ``folder``, under a name made of its content.
    Raises ShimError with the compiler's message.
    """
    return _build(source, str(folder) if folder else None)


@functools.lru_cache(maxsize=64)
def _build(source: str, folder: str | None) -> Module:
    kernels = parse(source)
    if not kernels:
        raise ShimError('the source has no kernel; write `extern "C" __global__ void name(...)`')
    compiler = find()
    if compiler is None:
        raise ShimError(why_not())
    text = translate(source, kernels)
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="minigraph-") as place:  # a loaded library needs its file no longer
            return _load(_compile(compiler, text, source, Path(place) / "kernels.so"), kernels)
    name = hashlib.sha256("\0".join((compiler, *FLAGS, text)).encode()).hexdigest()[:32]
    path = Path(folder) / f"shim-{name}.so"
    try:
        return _load(path, kernels)
    except OSError:  # absent or broken
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as place:
            os.replace(_compile(compiler, text, source, Path(place) / "kernels.so"), path)
        return _load(path, kernels)


def _load(path: Path, kernels: tuple[Kernel, ...]) -> Module:
    return Module(ctypes.CDLL(str(path)), kernels)


def _compile(compiler: str, text: str, source: str, path: Path) -> Path:
    try:
        done = subprocess.run([compiler, *FLAGS, "-", "-o", str(path), "-lm"], input=text.encode(), capture_output=True,
                              env={**os.environ, "LC_ALL": "C"})  # fmt: skip
    except OSError as error:
        raise ShimError(f"the C++ compiler `{compiler}` cannot be started: {error.strerror or error}.{_advice()}") from error
    if done.returncode or not path.exists():
        silent = f"`{compiler}` ended with status {done.returncode} and made nothing.{_advice()}"
        raise ShimError(_refusal(done.stderr.decode(errors="replace").strip() or silent, source))
    return path


def _advice() -> str:
    return " Unset CXX, which names it, so that g++ is looked for." if os.environ.get("CXX") else " Install g++ from your system."


def _refusal(log: str, source: str) -> str:
    """The sentence for a source that does not compile: each error, and the source line beneath it."""
    lines, shown = source.splitlines(), []
    for number, message in re.findall(rf"^{re.escape(FILE)}:(\d+):\d+: (?:fatal )?error: (.*)", log, re.M):
        line = lines[int(number) - 1].strip() if int(number) <= len(lines) else ""
        shown.append(f"\n    line {number}: {message}\n        {line}")
    return "g++ refuses the CUDA source" + ("".join(shown) or ":\n" + log.strip()[-2000:])
