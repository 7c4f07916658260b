"""Is there a GPU that CuPy can use, and if not, why? Asked once; the answer is a sentence.

The file is a program too, for `doctor`: a broken driver may crash or hang the process that asks it, so that is done in
another one. It imports only the standard library at the top.
"""

import functools
import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Status:
    """What was found. `reason` says why CuPy is of no use here and what to try; empty where it works.

    `name` is the GPU's, `count` how many there are; `driver` is the newest CUDA that the driver runs, `cuda` the one
    that CuPy was built for.
    """

    ok: bool
    reason: str = ""
    name: str = ""
    count: int = 0
    driver: str = ""
    cuda: str = ""
    cupy: str = ""


@functools.cache
def gpu_status() -> Status:
    """What `look` found when it was first asked: a try can take seconds."""
    return look()


def look() -> Status:
    """Import CuPy, find a device, allocate there, compile a kernel and run it; never raises."""
    try:
        import cupy
    except Exception as error:  # what a missing library raises is not always an ImportError
        missing = isinstance(error, ModuleNotFoundError) and error.name == "cupy"
        return Status(False, "CuPy is not installed" if missing else f"CuPy does not import ({first_line(error)})")
    runtime = getattr(getattr(cupy, "cuda", None), "runtime", None)
    facts = dict(
        cupy=getattr(cupy, "__version__", ""),
        driver=version(ask(lambda: runtime.driverGetVersion(), 0)),
        cuda=version(ask(lambda: runtime.runtimeGetVersion(), 0)),
        count=ask(lambda: runtime.getDeviceCount(), 0),
        name=ask(lambda: runtime.getDeviceProperties(runtime.getDevice())["name"], ""),
    )
    if isinstance(facts["name"], bytes):
        facts["name"] = facts["name"].decode(errors="replace")
    try:  # a device may be listed and yet refuse memory or a kernel
        total = float((cupy.ones(2, dtype="float32") + 1).sum())
    except Exception as error:
        return Status(False, explain(error, facts["driver"], facts["cuda"]), **facts)
    return Status(total == 4.0, "" if total == 4.0 else "the GPU computes 1 + 1 wrongly", **facts)


def explain(error: Exception, driver: str = "", cuda: str = "") -> str:
    """The sentence for what CuPy raised; ``driver`` and ``cuda`` are versions like 13.0, as far as they are known."""
    text = str(error)
    have, built = driver.partition(".")[0], cuda.partition(".")[0]
    suffix = f"-cu{built}" if built == "12" else ""  # of NVIDIA's wheels: those for CUDA 13 have none
    if "InsufficientDriver" in text:
        if not driver:
            return "there is no NVIDIA driver here, and CUDA needs one, and a GPU"
        wheel = f"cupy-cuda{have}x in its place, or " if have in ("12", "13") and have != built else ""
        return (f"the NVIDIA driver runs CUDA up to {driver}, but this CuPy was built for CUDA {cuda}:"
                f" install {wheel}a newer driver")
    for sign, sentence in (
        ("NoDevice", "the NVIDIA driver sees no GPU"),
        ("nvrtc.so", f"CuPy finds no NVRTC, the compiler of its kernels: install nvidia-cuda-nvrtc{suffix}"),
        ("nvrtc64", f"CuPy finds no NVRTC, the compiler of its kernels: install nvidia-cuda-nvrtc{suffix}"),
        ("cublas", f"CuPy finds no cuBLAS, which it needs for matrix products: install nvidia-cublas{suffix}"),
        ("cannot open source file", f"CuPy finds no CUDA headers: install nvidia-cuda-runtime{suffix}"),
        ("UnsupportedPtxVersion", "the compiler of CuPy's kernels is newer than the driver: install a newer driver"),
        ("NoBinaryForGpu", "this CuPy has no code for the GPU: install a newer CuPy"),
        ("Out of memory", "the GPU has no memory left for even a few numbers: another program holds it"),
        ("MemoryAllocation", "the GPU has no memory left for even a few numbers: another program holds it"),
        ("DevicesUnavailable", "the GPU is busy: another program holds it alone"),
    ):  # fmt: skip
        if sign in text:
            return sentence
    return f"CuPy does not work ({first_line(error)})"


def ask(question, otherwise):
    try:
        return question()
    except Exception:  # no driver, no device, or a stand-in
        return otherwise


def version(number: int) -> str:
    """CUDA's own number for a version, 12040, as people write it, 12.4; empty for 0, which is none."""
    return f"{number // 1000}.{number % 1000 // 10}" if number else ""


def first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def main() -> int:
    """Print one line about CuPy and the GPU; 0 where they work."""
    status = look()
    more = f" and {status.count - 1} more" if status.count > 1 else ""
    print(f"CuPy {status.cupy} on {status.name}{more}" if status.ok else status.reason)
    return 0 if status.ok else 1


if __name__ == "__main__":
    sys.exit(main())
