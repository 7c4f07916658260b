# The same network in XLA, with 4 rows at a time: what its program calls, and the first layer. The
# product is a library's, and the three operations behind it are one generated loop.
# jax 0.10.2, jaxlib 0.10.2, on the CPU; Python 3.11, Linux x86-64, 2026-11.
# `pip install jax==0.10.2 jaxlib==0.10.2; python course/exhibits/xla-launches.py`
import os
import re
from collections import Counter

os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import jax.numpy as jnp

LAYERS, WIDTH, ROWS = 32, 64, 4


def mlp(x, w):
    for weight, bias, scale in w:
        x = jnp.maximum(x @ weight + bias, 0) * scale
    return x


def array(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


layers = [(array(WIDTH, WIDTH), array(WIDTH), array(WIDTH))] * LAYERS
text = jax.jit(mlp).lower(array(ROWS, WIDTH), layers).compile().as_text()
program = text[text.index("ENTRY"):].replace("ROOT ", "").splitlines()
calls = [line.strip() for line in program if " fusion(" in line or " dot(" in line]
kinds = Counter(re.match(r"%([a-z_]+)", line)[1] for line in calls)
print(len(calls), "=", " + ".join(f"{many} {kind}" for kind, many in kinds.items()))
print("the first layer:")
for line in calls[:2]:
    print("  ", re.sub(r", (calls|metadata|backend_config)=.*|\{1,0\}|%", "", line))
    name = re.search(r"calls=(%\S+?),", line)[1]
    body = re.search(rf"^{re.escape(name)} .*?\n}}", text, re.DOTALL | re.MULTILINE)[0]
    inside = [op for op in re.findall(r" = \S+ (\w+)\(", body) if op not in ("parameter", "constant", "broadcast")]
    print("      inside:", ", ".join(inside))
