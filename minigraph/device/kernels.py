"""Generated CUDA, compiled and loaded through CuPy."""

from __future__ import annotations

import functools
from collections.abc import Callable

from ..codegen.program import Program
from ..errors import RunError

FILE = "kernels.cu"  # what the compiler's messages call the source
STRICT = ("--fmad=false",)  # a product is rounded before it is added, as NumPy does it


def load(cupy, program: Program, contract: bool = False) -> dict[str, Callable]:
    """Kernel name -> function of (grid, block, arguments), on the current GPU.

    ``contract`` lets the compiler join a product and a sum. Not by ``cupy.RawModule(code=...)``: to what CuPy compiles
    it adds ``-ftz=true``, which turns the smallest float32 numbers to zero.
    """
    if not program.kernels:
        return {}
    module = cupy.cuda.Module()
    module.load(compile(cupy, program.source, int(cupy.cuda.Device().compute_capability), () if contract else STRICT))
    return {kernel.name: module.get_function(kernel.name) for kernel in program.kernels}


@functools.lru_cache(maxsize=64)
def compile(cupy, source: str, capability: int, options: tuple[str, ...]) -> bytes:
    """Machine code for a GPU of this compute capability (80 is 8.0); raises RunError with the compiler's first errors.

    For a GPU that the compiler does not know the code is PTX, from which the driver makes its own.
    """
    nvrtc = cupy.cuda.nvrtc
    archs = [arch for arch in nvrtc.getSupportedArchs() if arch <= capability]
    if not archs:
        least = min(nvrtc.getSupportedArchs())
        raise RunError(f"the GPU is of compute capability {capability // 10}.{capability % 10}, and this NVRTC compiles"
                       f" for {least // 10}.{least % 10} and newer: install CuPy for an older CUDA, cupy-cuda12x")
    known = max(archs) == capability
    target = f"--gpu-architecture={'sm' if known else 'compute'}_{max(archs)}"
    program = nvrtc.createProgram(source, FILE, (), ())
    try:
        try:
            nvrtc.compileProgram(program, (target, *options))
        except nvrtc.NVRTCError as error:
            log = [line.strip() for line in nvrtc.getProgramLog(program).splitlines() if "error" in line]
            raise RunError("\n    ".join([f"NVRTC refuses a generated kernel ({error})", *log[:3]])) from error
        code = nvrtc.getCUBIN(program) if known else nvrtc.getPTX(program)
        return code if isinstance(code, bytes) else code.encode()
    finally:
        nvrtc.destroyProgram(program)
