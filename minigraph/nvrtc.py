"""Compile CUDA on any machine: NVRTC, NVIDIA's run-time compiler, needs no GPU. And count what the PTX does.

Called through ctypes, so the one wheel `nvidia-cuda-nvrtc` is enough. Nothing is cached on disk.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from . import doctor
from .errors import MinigraphError

ARCHS = (75, 80, 90)  # Turing, Ampere, Hopper; NVRTC 13 knows none older than 75
OPTIONS = ("--fmad=false",)  # every product is rounded before it is added, as NumPy does it
FILE = "kernels.cu"  # what the compiler's messages call the source
SHOWN = 5  # error lines in a message; the whole log is in the error


class NvrtcError(MinigraphError):
    """NVRTC is absent, or refuses a source; ``log`` is all that it printed."""

    def __init__(self, message: str, log: str = ""):
        self.log = log
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Compiled:
    """What the compiler made: PTX as text, a cubin as bytes; and its warnings."""

    arch: int
    code: bytes = field(repr=False)
    log: str = ""

    @property
    def ptx(self) -> str:
        """The code as text; raises NvrtcError for a cubin."""
        if self.code[:4] == b"\x7fELF":
            raise NvrtcError('this is a cubin, machine code: compile with to="ptx" to read it')
        return self.code.rstrip(b"\0").decode()


def find() -> str | None:
    """The NVRTC library here that loads and answers, or None: a wheel's for CUDA 13 or 12, else a toolkit's."""
    library = _library()
    return library._name if library else None


def why_not() -> str:
    """One sentence on why nothing can be compiled here and what to install; empty where it can."""
    return "" if find() else f"NVRTC, the compiler for CUDA, is not installed. {doctor.nvrtc_row().remedy}"


@functools.cache
def _library() -> ctypes.CDLL | None:
    for path in doctor.nvrtc_libraries():
        if hasattr(os, "add_dll_directory") and os.path.isabs(path):
            os.add_dll_directory(str(Path(path).parent))  # on Windows it opens a second library, its built-ins
        try:
            library = ctypes.CDLL(path)
            if library.nvrtcVersion(ctypes.byref(ctypes.c_int()), ctypes.byref(ctypes.c_int())) == 0:
                library.nvrtcGetErrorString.restype = ctypes.c_char_p
                return library
        except (OSError, AttributeError):
            continue
    return None


def compile(source: str, arch: int = 80, to: str = "ptx", options: tuple[str, ...] = OPTIONS) -> Compiled:
    """Compile CUDA C++ for one architecture: 80 is sm_80. ``to`` is "ptx" or "cubin".

    Raises NvrtcError with the compiler's lines and the source line that they speak of.
    """
    library = _library()
    if library is None:
        raise NvrtcError(why_not())
    if to not in ("ptx", "cubin"):
        raise NvrtcError(f'to is "ptx" or "cubin", not {to!r}')
    target = f"--gpu-architecture={'compute' if to == 'ptx' else 'sm'}_{arch}"
    words = [word.encode() for word in (target, *options)]
    program = ctypes.c_void_p()
    _check(library, library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), FILE.encode(), 0, None, None))
    try:
        status = library.nvrtcCompileProgram(program, len(words), (ctypes.c_char_p * len(words))(*words))
        log = _text(library, program, "ProgramLog").rstrip(b"\0").decode(errors="replace").strip()
        if status:
            raise NvrtcError(_refusal(library, status, log, source, f"{to} for sm_{arch}"), log)
        return Compiled(arch, _text(library, program, "PTX" if to == "ptx" else "CUBIN"), log)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _text(library: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    _check(library, getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    _check(library, getattr(library, f"nvrtcGet{what}")(program, buffer))
    return buffer.raw


def _check(library: ctypes.CDLL, status: int) -> None:
    if status:
        raise NvrtcError(f"NVRTC fails: {library.nvrtcGetErrorString(status).decode()}")


def _refusal(library: ctypes.CDLL, status: int, log: str, source: str, what: str) -> str:
    """The sentence for a compilation that failed: each error's line, and the source line beneath it."""
    lines, shown = source.splitlines(), []
    errors = [line.strip() for line in log.splitlines() if re.search(r"\berror\b", line)]
    for line in errors[:SHOWN]:
        shown.append(f"\n    {line}")
        place = re.match(rf"{re.escape(FILE)}\((\d+)\)", line)
        if place and 1 <= int(place[1]) <= len(lines):
            shown.append(f"\n        {lines[int(place[1]) - 1].strip()}")
    if len(errors) > SHOWN:
        shown.append(f"\n    and {len(errors) - SHOWN} more")
    return f"NVRTC makes no {what}: {library.nvrtcGetErrorString(status).decode()}" + "".join(shown)


# ---- counting ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Counts:
    """Instructions in one kernel's PTX, as written: one in a loop counts once, or as often as it was unrolled.

    A load of four floats at once (``ld.global.v4.f32``) is one load of 16 bytes. ``loads`` and ``stores`` go to global
    memory, and so are counted those whose place the compiler does not know. Arithmetic is floating point only.
    """

    loads: int = 0
    stores: int = 0
    load_bytes: int = 0  # by one thread, each load once
    store_bytes: int = 0
    widest: int = 0  # elements in the widest load or store of global memory: 4 for v4
    shared_loads: int = 0
    shared_stores: int = 0
    local_loads: int = 0  # arrays and spilled registers of one thread
    local_stores: int = 0
    atomics: int = 0
    barriers: int = 0  # of the block; a warp's are not counted
    shuffles: int = 0
    add: int = 0  # and subtract
    mul: int = 0
    fma: int = 0
    special: int = 0  # division, roots, and the approximations under exp, log, sin and tanh
    instructions: int = 0


ACCESS = {"ld": "loads", "ldu": "loads", "st": "stores"}
SPACES = ("shared", "local", "param", "const")
WORDS = {"atom": "atomics", "red": "atomics", "bar": "barriers", "barrier": "barriers", "shfl": "shuffles"}
ARITHMETIC = {"add": "add", "sub": "add", "mul": "mul", "fma": "fma", "mad": "fma"} | dict.fromkeys(
    ("div", "rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh"), "special"
)
ENTRY = re.compile(r"\.entry\s+([\w$]+)")
INSTRUCTION = re.compile(r"(?:@!?%\w+\s+)?([a-z][\w.:]*)\b[^;:]*;")


def ptx_counts(ptx: str) -> dict[str, Counts]:
    """Kernel name -> what its PTX holds, in the text's order.

    Instructions are named as in NVIDIA's PTX ISA, https://docs.nvidia.com/cuda/parallel-thread-execution.
    """
    counters: dict[str, Counter] = {}
    counter, depth = None, 0
    for line in ptx.splitlines():
        line = line.partition("//")[0].strip()
        entry = ENTRY.search(line)
        if entry:
            counter = counters.setdefault(entry[1], Counter())
        found = INSTRUCTION.match(line)
        if counter is not None and depth and found:
            _count(counter, found[1].split("."))
        if not found or line.startswith(("{", "}")):  # braces inside an instruction are a vector's
            depth += line.count("{") - line.count("}")
            if depth == 0 and "}" in line:
                counter = None
    return {name: _counts(counter) for name, counter in counters.items()}


def _counts(counter: Counter) -> Counts:
    widths = [int(key[1:]) for key in counter if key[0] == "v"]
    return Counts(widest=max(widths, default=0), **{key: number for key, number in counter.items() if key[0] != "v"})


def _count(counter: Counter, parts: list[str]) -> None:
    """Add one instruction, given as the parts of its name: ["ld", "global", "v4", "f32"]."""
    name, kind = parts[0], parts[-1]
    counter["instructions"] += 1
    if name in ACCESS:
        space = next((part.partition("::")[0] for part in parts if part.partition("::")[0] in SPACES), "global")
        if space in ("shared", "local"):
            counter[f"{space}_{ACCESS[name]}"] += 1
        elif space == "global":
            width = next((int(part[1:]) for part in parts if re.fullmatch(r"v\d", part)), 1)
            counter[ACCESS[name]] += 1
            counter[ACCESS[name][:-1] + "_bytes"] += width * int(re.sub(r"\D", "", kind)) // 8
            counter[f"v{width}"] += 1
    elif name in WORDS and "warp" not in parts and "cluster" not in parts:
        counter[WORDS[name]] += 1
    elif name in ARITHMETIC and kind.startswith(("f", "bf")):
        counter[ARITHMETIC[name]] += 1
