"""Float32 functions in plain C that a compiler vectorizes (first version: libm's)."""

from __future__ import annotations

FUNCTIONS: dict[str, str] = {
    f"{name}_f32": f"float {name}_f32(float x) {{\n  return {name}f(x);\n}}\n"
    for name in ("exp", "exp2", "expm1", "log", "log2", "log1p", "tanh", "erf", "sin", "cos")
} | {"pow_f32": "float pow_f32(float x, float y) {\n  return powf(x, y);\n}\n"}
