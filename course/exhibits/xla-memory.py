# The three experts in XLA, written in both orders: the arena's buffers, with the instructions
# over which they live (the inputs are 0 to 6) and their offsets. XLA chooses its own order, the
# same for both.
# jax 0.10.2, jaxlib 0.10.2, on the CPU; Python 3.11, Linux x86-64, 2026-11.
# `pip install jax==0.10.2 jaxlib==0.10.2; python course/exhibits/xla-memory.py`
import os
import re
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp())
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = f"--xla_dump_to={folder}"
import jax
import jax.numpy as jnp


def all_wide_first(x, ups, downs):
    wide = [x @ up for up in ups]
    return sum(one @ down for one, down in zip(wide, downs))


def one_by_one(x, ups, downs):
    return sum(x @ up @ down for up, down in zip(ups, downs))


def shape(*dims):
    return jax.ShapeDtypeStruct(dims, jnp.float32)


for function in (all_wide_first, one_by_one):
    compiled = jax.jit(function).lower(shape(16, 64), [shape(64, 256)] * 3, [shape(256, 64)] * 3).compile()
    (report,) = folder.glob(f"*{function.__name__}*buffer-assignment.txt")
    (ranges,) = folder.glob(f"*{function.__name__}*live-range.txt")
    life = dict(re.findall(r"^    (\S+)\{\}:(\d+-\d+)$", ranges.read_text(), re.MULTILINE))
    arena = report.read_text().partition("preallocated-temp:")[2].partition("\n\n")[0]
    print(f"{function.__name__}: an arena of {compiled.memory_analysis().temp_size_in_bytes} bytes")
    found = re.findall(r"<\d+ (\S+) @0> \(size=(\d+),offset=(\d+)\): (\S+?)\{", arena)
    for name, size, offset, dims in sorted(found, key=lambda row: int(life[row[0]].partition("-")[0])):
        print(f"   alive over {life[name]:6} {dims:12} {size:>6} bytes at offset {offset}")
