"""Run the same CUDA source text on the CPU, with g++: threads as fibers, real barriers, races exposed.

A test tool: `build(source).run([(Launch(...), arguments), ...])`. It models blocks, shared memory, barriers, warps and
atomics, not the GPU's weak memory order nor its approximate functions, and it is no measure of speed.
"""

from .compiler import build, find, why_not
from .kernels import Kernel, Param, ShimError
from .run import Launch, Module

__all__ = ["Kernel", "Launch", "Module", "Param", "ShimError", "build", "find", "why_not"]
