"""Read the kernels of a CUDA source, and turn the source into C++ that g++ compiles with the two headers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from ..errors import MinigraphError


class ShimError(MinigraphError, ValueError):
    """A CUDA source that the shim cannot run, or a mistake that running it has shown."""


class Param(NamedTuple):
    """One parameter of a kernel: ``const float *x`` has the base ``float``, is a pointer and const."""

    text: str
    base: str
    name: str
    pointer: bool
    const: bool


class Kernel(NamedTuple):
    """One ``extern "C" __global__ void`` function; ``line`` counts from 1, its text goes from ``start`` to ``stop``."""

    name: str
    params: tuple[Param, ...]
    line: int
    start: int
    stop: int
    waits: bool  # has barriers or warp functions, so that its threads must be fibers
    shared: bool  # has shared memory of a fixed size
    most_threads: int  # of a block

    def __str__(self) -> str:
        return f"{self.name}({', '.join(param.text for param in self.params)})"


MOST_THREADS = 1024
INVISIBLE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
BOUNDS = r"(?:__launch_bounds__\s*\(([^)]*)\)\s*)?"
KERNEL = re.compile(rf"__global__\s+{BOUNDS}void\s+{BOUNDS}(\w+)\s*\(")
WAITS = re.compile(r"__(?:sync\w+|shfl\w*|ballot_sync|any_sync|all_sync)\b")
ALIGN = r"(?:(?:__align__|alignas)\s*\(\s*\w+\s*\)\s*)?"
DYNAMIC_SHARED = re.compile(rf"\bextern\s+{ALIGN}__shared__\s+{ALIGN}([\w\s]+?)\s*\b(\w+)\s*\[\s*\]\s*;")
STRAYS = (
    (r"__global__(?![^{;]*;)", 'write `extern "C" __global__ void name(...)`'),  # a declaration alone is fine
    (r"__shared__", "declare an array of fixed size inside its kernel"),
)

FILE = "kernels.cu"  # what the compiler's messages call the source
HEADERS = tuple(Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("cuda.hpp", "fibers.hpp"))


def parse(source: str) -> tuple[Kernel, ...]:
    """The kernels of a source, in its order; raises ShimError for a declaration that it cannot read."""
    text = INVISIBLE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), source)
    kernels, outside, end = [], [], 0
    for found in KERNEL.finditer(text):
        after = _closing(text, found.end() - 1, "()")
        brace = re.compile(r"\s*\{").match(text, after)
        if not brace:
            continue  # declared here, defined elsewhere
        stop = _closing(text, brace.end() - 1, "{}")
        outside.append(text[end : found.start()])
        end = stop
        body = DYNAMIC_SHARED.sub("", text[brace.start() : stop])
        bound = (found[1] or found[2] or "").partition(",")[0].strip()
        params = tuple(map(_param, filter(str.strip, text[found.end() : after - 1].split(","))))
        line = text.count("\n", 0, found.start()) + 1
        most = int(bound) if bound.isdecimal() else MOST_THREADS
        kernels.append(Kernel(found[3], params, line, found.start(), stop, bool(WAITS.search(body)),
                              "__shared__" in body, most))  # fmt: skip
    rest = DYNAMIC_SHARED.sub("", "".join(outside) + text[end:])
    for pattern, remedy in STRAYS:
        if re.search(pattern, rest):
            raise ShimError(f"the shim cannot read a {pattern[:10]} that stands outside the kernels it found; {remedy}")
    if len({kernel.name for kernel in kernels}) < len(kernels):
        raise ShimError("two kernels of the source have one name")
    # a function that waits may be called by any kernel
    return tuple(kernel._replace(waits=kernel.waits or bool(WAITS.search(rest))) for kernel in kernels)


def _closing(text: str, start: int, pair: str) -> int:
    """The offset just behind the bracket that closes the one at ``start``."""
    depth = 0
    for found in re.compile("[" + re.escape(pair) + "]").finditer(text, start):
        depth += 1 if found[0] == pair[0] else -1
        if depth == 0:
            return found.end()
    raise ShimError(f"line {text.count(chr(10), 0, start) + 1}: a '{pair[0]}' is never closed")


def _param(text: str) -> Param:
    words = re.findall(r"\w+|\*|\S", text)
    words = [word for word in words if word not in ("__restrict__", "__restrict", "volatile")]
    pointer, name = words.count("*") == 1, words[-1]
    const = "const" in (words[: words.index("*")] if pointer else words)
    base = [word for word in words[:-1] if word not in ("const", "*")]
    if not base or words.count("*") > 1 or not all(re.fullmatch(r"\w+", word) for word in (*base, name)):
        raise ShimError(f"cannot read the parameter `{' '.join(words)}`: write a type, maybe a *, and a name")
    return Param(" ".join(text.split()), _canonical(base), name, pointer, const)


def _canonical(words: list[str]) -> str:
    """One spelling for each of C's integer types: ``long long unsigned int`` is ``unsigned long long``."""
    integer = {"unsigned", "signed", "int", "long", "short", "char"}
    if not set(words) <= integer:
        return " ".join(words)
    size = [word for word in words if word in ("long", "short", "char")] or ["int"]
    sign = [word for word in ("unsigned", "signed") if word in words]
    return " ".join([word for word in sign if word == "unsigned" or "char" in size] + size)


def translate(source: str, kernels: tuple[Kernel, ...]) -> str:
    """The source as C++: its own text, but for the section of each kernel's shared memory and ``extern __shared__``."""
    parts, calls, table, end = [HEADERS[0], f'\n#line 1 "{FILE}"\n'], [], [], 0
    for number, kernel in enumerate(kernels):
        # a section of its own for each, so that the poison goes over one kernel's arrays only
        section = f'static __attribute__((used, section("minigraph_{number}")))'
        define = f"\n#undef __shared__\n#define __shared__ {section}\n#line {kernel.line}\n"
        parts += [source[end : kernel.start], define, source[kernel.start : kernel.stop]]
        end = kernel.stop
        types = [f"{'const ' * param.const}{param.base} {'*' * param.pointer}" for param in kernel.params]
        values = ", ".join(f"*({type} *)args[{i}]" for i, type in enumerate(types))
        calls.append(f"static void minigraph_call_{number}(void **args) {{ {kernel.name}({values}); }}")
        edges = ["nullptr", "nullptr"]
        if kernel.shared:  # the linker makes these two names for every section
            edges = [f"__start_minigraph_{number}", f"__stop_minigraph_{number}"]
            calls += [f'extern "C" __attribute__((weak)) unsigned char {edge}[];' for edge in edges]
        table.append(f"    {{minigraph_call_{number}, {str(kernel.waits).lower()}, {', '.join(edges)}}},")
    text = DYNAMIC_SHARED.sub(_pointer, "".join([*parts, source[end:]]))
    start = "MINIGRAPH_EXPORT const minigraph_shim::Kernel minigraph_kernels[] = {"
    return "\n".join([text, '#line 1 "shim"', *calls, HEADERS[1], start, *table, "};\n"])


def _pointer(found: re.Match) -> str:
    """``extern __shared__ float s[];`` as a pointer to the launch's bytes, on as many lines."""
    type, name = found[1], found[2]
    return f"{type} *const {name} = ({type} *)minigraph_shim::dynamic_shared;" + "\n" * found[0].count("\n")
