"""Every expression that a dialect writes, compiled and run against the op table, on values where C and NumPy differ."""

from __future__ import annotations

import ctypes
import multiprocessing
import platform
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pytest

from minigraph import compiler, nvrtc
from minigraph.dialect import C, C_FLAGS, CUDA, Dialect
from minigraph.errors import GraphError
from minigraph.fuzz import within_ulps
from minigraph.ops import OPS, Kind, infer, make_attrs
from minigraph.random_graphs import ORDINARY, SPECIAL
from minigraph.scalars import FLOATS, float32_functions
from minigraph.types import DTYPES, Type, same_bits

needs_compiler = pytest.mark.skipif(compiler.find_compiler() is None, reason="no C compiler on this machine")
needs_nvrtc = pytest.mark.skipif(bool(nvrtc.why_not()), reason=nvrtc.why_not() or "NVRTC is here")

# ---- every operation on every dtype that generated code has ---------------------------------------------------------


def all_cases() -> list[tuple]:
    """(op, operand dtypes, result dtype, attributes) of everything that ``supports`` says yes to."""
    found = []
    for row in (row for row in OPS.values() if row.kind is Kind.ELEMENTWISE):
        for dtypes in product(C.types, repeat=min(int(row.arity[0]), 2)):
            dtypes = (*dtypes, dtypes[1]) if row.name == "where" else dtypes
            for given in [{"dtype": dtype} for dtype in C.types] if row.attrs else [{}]:
                attrs, types = make_attrs(row, given), tuple(map(Type, dtypes))
                try:
                    result = infer(row, types, attrs)
                except GraphError:
                    continue
                if C.supports(row, types, result, attrs):
                    found.append((row.name, dtypes, result.dtype, attrs))
    return found


CASES = all_cases()
ELEMENTWISE = list(dict.fromkeys(op for op, *_ in CASES))


def source(dialect: Dialect, head: str, numbers=range(len(CASES))) -> str:
    """One loop for each case: ``f0``, ``f1``, ... and in front of them what they call."""
    loops, used = [], set()
    for number in numbers:
        op, dtypes, result, attrs = CASES[number]
        text, helpers = dialect.expression(OPS[op], list("abc")[:len(dtypes)], list(dtypes), result, attrs)
        names = list(zip(map(dialect.type, dtypes), "abc"))
        parameters = [f"const {type} *{name}s" for type, name in names]
        parameters += [f"{dialect.type(result)} *out", "long n"]
        loads = " ".join(f"{type} {name} = {name}s[i];" for type, name in names)
        loops.append(f"{head} f{number}({', '.join(parameters)}) {{\n"
                     f"  for (long i = 0; i < n; i++) {{ {loads} out[i] = {text}; }}\n}}\n")
        used |= helpers
    return dialect.prologue(used) + "".join(loops)


def build(folder, text: str, name: str, *flags: str) -> tuple[ctypes.CDLL, str]:
    """The library of a source, and what the compiler had to say."""
    (folder / name).write_text(text)
    command = [*compiler.find_compiler(), *flags, "-shared", "-fPIC", name, "-o", f"{name}.so", "-lm"]
    if name.endswith(".cpp") and "ziglang" in command:
        command[command.index("cc")] = "c++"
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(folder / f"{name}.so")), done.stderr


PLAIN = "#include <cmath>\n#define __device__\n"  # CUDA as C++ for the CPU; at -O1, without -fwrapv, nothing forgives


@pytest.fixture(scope="module")
def libraries(tmp_path_factory) -> dict[Dialect, ctypes.CDLL]:
    folder = tmp_path_factory.mktemp("dialect")
    texts = {C: (source(C, "void"), "c.c", *C_FLAGS)}
    if has_cpp(folder):
        texts[CUDA] = PLAIN + source(CUDA, 'extern "C" void'), "cuda.cpp", "-O1", "-ffp-contract=off"
    with ThreadPoolExecutor() as pool:
        made = list(pool.map(lambda item: build(folder, *item)[0], texts.values()))
    return dict(zip(texts, made))


def has_cpp(folder) -> bool:
    try:
        return bool(build(folder, PLAIN, "probe.cpp"))
    except AssertionError:
        return False


def call(function, arrays: list[np.ndarray], result: str) -> np.ndarray:
    out = np.empty(arrays[0].shape, DTYPES[result])
    function(*(ctypes.c_void_p(array.ctypes.data) for array in (*arrays, out)), ctypes.c_long(out.size))
    return out


def random_bits(dtype: str, count: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, count).astype(bool)
    return np.frombuffer(rng.bytes(count * DTYPES[dtype].itemsize), DTYPES[dtype])


def operands(dtypes: tuple[str, ...]) -> list[np.ndarray]:
    """Every pair of special and ordinary values, then random bits."""
    pools = [np.concatenate([SPECIAL[dtype], ORDINARY[dtype]]) for dtype in dtypes]
    grid = [side.ravel() for side in np.meshgrid(*pools[-2:])]
    grid = [np.resize(pools[0], grid[0].size)] * (len(dtypes) - len(grid)) + grid
    return [np.concatenate([values, random_bits(dtype, 1500, seed)])
            for seed, (values, dtype) in enumerate(zip(grid, dtypes))]  # fmt: skip


@needs_compiler
@pytest.mark.parametrize("dialect", [C, CUDA], ids=["c", "cuda"])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_an_expression_computes_what_numpy_does(libraries, dialect, name):
    if dialect not in libraries:
        pytest.skip("the C compiler here compiles no C++, which CUDA on the CPU needs")
    for number, (op, dtypes, result, attrs) in enumerate(CASES):
        if op != name:
            continue
        arrays = operands(dtypes)
        with np.errstate(all="ignore"):
            wanted = np.asarray(OPS[op].numpy(*arrays, **dict(attrs or ())))
        got = call(getattr(libraries[dialect], f"f{number}"), arrays, result)
        ulp = OPS[op].ulp if result in FLOATS else 0
        if not (within_ulps(ulp, got, wanted) if ulp else same_bits(got, wanted)):
            wrong = next(at for at in range(got.size) if not same_bits(got[at], wanted[at]))
            given = [array[wrong] for array in arrays]
            pytest.fail(f"{op}{dtypes} of {given} is {got[wrong]!r}, not {wanted[wrong]!r}")


def test_every_elementwise_row_is_there_and_what_has_no_kernel_says_so():
    assert ELEMENTWISE == [row.name for row in OPS.values() if row.kind is Kind.ELEMENTWISE]
    assert {case[1][0] for case in CASES if case[0] == "pow"} == {"f32", "f64", "u8", "u16", "u32", "u64"}
    half, single = Type("f16", (3,)), Type("f32", (3,))
    assert C.supports(OPS["add"], (single, single), single) and not C.supports(OPS["add"], (half, half), half)
    assert not C.supports(OPS["sum"], (single,), Type("f32"))
    assert C.costly(OPS["exp"], "f32") and not C.costly(OPS["sqrt"], "f32") and not C.costly(OPS["mod"], "i32")
    with pytest.raises(GraphError, match="no f16"):
        C.type("f16")


INTEGER = [number for number, (_, dtypes, _, attrs) in enumerate(CASES) if dtypes[0][0] in "iu" and not attrs]


def call_all(library: ctypes.CDLL) -> None:
    for number in INTEGER:
        _, dtypes, result, _ = CASES[number]
        call(getattr(library, f"f{number}"), operands(dtypes), result)


@needs_compiler
def test_cuda_source_leaves_nothing_undefined(tmp_path):
    """Signed overflow and shifts beyond the width are not defined in C++, so the code may not contain them."""
    flags = ("-O1", "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error")
    try:
        build(tmp_path, PLAIN, "probe.cpp", *flags)
        context = multiprocessing.get_context("fork")
    except (AssertionError, OSError, ValueError) as error:
        pytest.skip(f"no C++ compiler with a sanitizer here: {str(error)[:200]}")
    library, _ = build(tmp_path, PLAIN + source(CUDA, 'extern "C" void', INTEGER), "checked.cpp", *flags)
    process = context.Process(target=call_all, args=(library,))
    process.start()
    process.join()
    assert process.exitcode == 0, "a trap: something undefined was executed"


@needs_nvrtc
@pytest.mark.parametrize("arch", nvrtc.ARCHS)
def test_nvrtc_compiles_every_expression(arch):
    numbers = range(0, len(CASES), 1 if arch == 80 else 10)
    text = CUDA.prologue(CUDA.helpers) if arch != 80 else ""
    assert nvrtc.compile(source(CUDA, 'extern "C" __global__ void', numbers), arch).ptx.count(".entry") == len(numbers)
    assert not text or nvrtc.compile(text, arch).ptx


# ---- the float32 functions ------------------------------------------------------------------------------------------

MATH = [name for name, text in float32_functions().items() if re.search(r"[\d.]+ ulp", text)]
EACH = ("sin_each_f32", "cos_each_f32")
VARIANTS = {"this machine": C_FLAGS, "no fused multiply-add": ("-O2", "-ffp-contract=off", "-fwrapv")}


@pytest.fixture(scope="module")
def math(tmp_path_factory) -> tuple[dict[str, ctypes.CDLL], str]:
    folder = tmp_path_factory.mktemp("math")
    text = C.prologue([*MATH, *EACH])
    for name in EACH:
        text += f"void v_{name}(const float *x, const float *y, float *restrict out, long n) {{ {name}(out, x, n); }}\n"
    for name in MATH:
        second = "y" if name == "pow_f32" else "x"
        text += (f"void v_{name}(const float *x, const float *y, float *restrict out, long n) {{\n"
                 f"  for (long i = 0; i < n; i++) out[i] = {name}(x[i]{', y[i]' * (second == 'y')});\n}}\n")
    made = {variant: build(folder, text, f"m{number}.c", *flags)
            for number, (variant, flags) in enumerate(VARIANTS.items())}  # fmt: skip
    version = subprocess.run([*compiler.find_compiler(), "--version"], capture_output=True, text=True).stdout
    said = build(folder, text, "said.c", *C_FLAGS, "-fopt-info-vec")[1] if "Free Software" in version else ""
    return {variant: library for variant, (library, _) in made.items()}, said


def ulps(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """The distance of a float32 from a float64, in units of the last place there; infinite where only one is NaN."""
    wanted = exact.astype(np.float32)
    distance = np.abs(got.astype(np.float64) - exact) / np.spacing(np.minimum(np.abs(wanted), np.finfo(np.float32).max))
    right = (got == wanted) | (np.isnan(got) & np.isnan(exact))
    return np.where(right, np.where(np.isfinite(distance), distance, 0), np.where(np.isnan(distance), np.inf, distance))


def arguments(name: str) -> list[np.ndarray]:
    """2^20 random bit patterns, and as many numbers where the function is neither 0 nor 1 nor infinite."""
    rng = np.random.default_rng(7)
    count = 1 << 20
    common = rng.standard_normal(count).astype(np.float32) * np.float32(10)
    x = [np.concatenate([random_bits("f32", count), common, SPECIAL["f32"]])]
    if name == "pow_f32":
        base = np.exp(common)
        exponent = (rng.uniform(-100, 100, count) / common.astype(np.float64)).astype(np.float32)
        pairs = [side.ravel() for side in np.meshgrid(SPECIAL["f32"], SPECIAL["f32"])]
        x = [np.concatenate([random_bits("f32", count), base, pairs[0]]),
             np.concatenate([random_bits("f32", count, 1), exponent, pairs[1]])]  # fmt: skip
    return x


@needs_compiler
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", MATH)
def test_a_function_is_as_exact_as_its_comment_says(math, name, variant):
    claim = float(re.search(r"([\d.]+) ulp", float32_functions()[name])[1])
    x = arguments(name)
    with np.errstate(all="ignore"):
        exact = np.asarray(OPS[name.removesuffix("_f32")].numpy(*(array.astype(np.float64) for array in x)))
        got = call(getattr(math[0][variant], f"v_{name}"), [x[0], x[-1]], "f32")
        worst = ulps(got, exact)
    at = int(worst.argmax())
    print(f"{name}, {variant}: {worst.max():.2f} ulp at {[float(array[at]) for array in x]}, mean {worst.mean():.3f}")
    assert worst.max() <= claim, (name, [array[at] for array in x], got[at], exact[at])
    zero = (got == 0) & (exact == 0)
    assert (np.signbit(got) == np.signbit(exact))[zero].all(), "the sign of a zero"


@needs_compiler
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", EACH)
def test_many_at_once(math, name, variant):
    """Near 0 and near the zeros of the function, far away, and both in one array, whose bits are those of each alone."""
    function, one = getattr(math[0][variant], f"v_{name}"), OPS[name.removesuffix("_each_f32")].numpy
    rng, shift = np.random.default_rng(3), 0.5 * name.startswith("cos")
    zeros = ((rng.integers(-80_000, 80_000, 1 << 16) + shift) * np.pi).astype(np.float32)
    near = np.concatenate([rng.uniform(-1, 1, 1 << 18) * np.exp(rng.uniform(-90, 12, 1 << 18)), zeros, [0.0, -0.0]]).astype(np.float32)
    far = np.concatenate([random_bits("f32", 1 << 18), SPECIAL["f32"], np.array([2.0**18, -(2.0**18)], np.float32)])
    with np.errstate(all="ignore"):
        results = {}
        for kind, x in {"near": near, "far": far, "both": np.concatenate([near, far])}.items():
            results[kind] = call(function, [x, x], "f32")
            exact = one(x.astype(np.float64))
            assert ulps(results[kind], exact).max() <= OPS[name.removesuffix("_each_f32")].ulp
            zero = (results[kind] == 0) & (exact == 0)
            assert (np.signbit(results[kind]) == np.signbit(exact))[zero].all()
    assert same_bits(results["both"], np.concatenate([results["near"], results["far"]]))


@needs_compiler
@pytest.mark.skipif(platform.machine() != "x86_64", reason="what vectorizes depends on the processor")
def test_gcc_vectorizes_every_function(math):
    if not math[1]:
        pytest.skip("the compiler is not gcc, and does not say what it vectorized")
    assert math[1].count("loop vectorized") >= len(MATH)
    lines = {int(line) for line in re.findall(r"said\.c:(\d+):\d+: optimized: loop vectorized", math[1])}
    assert len(lines) == len(MATH) + 1 + 2 * len(EACH)  # all_near, and the two loops of each


# ---- text -----------------------------------------------------------------------------------------------------------


def test_expressions_read_well():
    def text(op, operands, dtypes, result, dialect=C):
        return dialect.expression(OPS[op], operands, dtypes, result)[0]

    two = ["f32", "f32"]
    assert text("mul", ["x", "y"], two, "f32") == "x * y"
    assert text("mul", ["a + b", "1e-05f"], two, "f32") == "(a + b) * 1e-05f"
    assert text("sub", ["f(a, x[i])", "-1.0f"], two, "f32") == "f(a, x[i]) - -1.0f"
    assert text("neg", ["-1.0f"], ["f32"], "f32") == "-(-1.0f)"
    assert text("mul", ["(a) + (b)", "x[i + 1]"], two, "f32") == "((a) + (b)) * x[i + 1]"
    assert text("maximum", ["a + b", "0.0f"], two, "f32") == "maximum_f32(a + b, 0.0f)"
    assert text("mul", ["a + b", "c"], ["i8", "i8"], "i8") == "(int8_t)(a + b) * c"  # a + b is an int in C
    assert text("tanh", ["t"], ["f32"], "f32") == "tanh_f32(t)" and text("tanh", ["t"], ["f64"], "f64") == "tanh(t)"
    assert text("dequantize", ["q", "s"], ["i8", "f32"], "f32") == "(float)q * s"
    assert text("cast", ["x"], ["f32"], "bool") == "x != 0" and text("cast", ["x"], ["f64"], "i8") == "f64_to_i8(x)"
    assert text("bitwise_not", ["m"], ["bool"], "bool") == "!m" and text("bitwise_not", ["m"], ["u8"], "u8") == "~m"
    assert text("where", ["c", "a", "b"], ["bool", *two], "f32") == "c ? a : b"
    assert text("tanh", ["t"], ["f32"], "f32", CUDA) == "tanhf(t)"
    assert text("add", ["i", "j"], ["i32", "i32"], "i32", CUDA) == "add_i32(i, j)"


def test_a_prologue_holds_what_is_used_and_nothing_else():
    def names(text):
        return re.findall(r"^static inline \w+ (\w+)\(", text, re.M)

    assert names(C.prologue([])) == []
    assert names(C.prologue(["sign_f32"])) == ["sign_f32"]
    assert names(C.prologue(["quantize_f32_to_i8"])) == ["f32_to_i8", "quantize_f32_to_i8"]
    assert names(C.prologue(["tanh_f32"])) == ["as_int", "as_float", "fma_f32", "power_of_two", "expm1_near_zero",
                                               "tanh_f32"]  # fmt: skip
    everything = names(C.prologue(C.helpers))
    assert everything == list(C.helpers)
    for dialect in (C, CUDA):
        seen = set()
        for name, text in dialect.helpers.items():
            called = set(re.findall(r"\w+", text)) & dialect.helpers.keys() - {name}
            assert called <= seen, f"{name} calls what comes later"
            seen.add(name)


@needs_compiler
def test_a_literal_is_the_number_to_the_bit(tmp_path):
    values = {dtype: np.concatenate([SPECIAL[dtype], random_bits(dtype, 300)]) for dtype in C.types}
    text = C.prologue([]) + "".join(
        f"const {C.type(dtype)} v_{dtype}[] = {{{', '.join(C.literal(dtype, value) for value in array)}}};\n"
        for dtype, array in values.items())  # fmt: skip
    library, said = build(tmp_path, text, "literals.c", "-Wall", "-Wextra")
    assert said == ""
    for dtype, array in values.items():
        address = ctypes.addressof(ctypes.c_char.in_dll(library, f"v_{dtype}"))
        got = np.frombuffer(ctypes.string_at(address, array.nbytes), array.dtype)
        assert same_bits(got, array)


def test_literals_read_well():
    shown = [C.literal(*pair) for pair in (("f32", 0.1), ("f32", -0.0), ("f32", np.inf), ("f64", 1e300), ("f32", 3),
                                           ("i64", -(2**63)), ("u8", 255), ("bool", True), ("u32", 7))]  # fmt: skip
    assert shown == ["0.1f", "-0.0f", "INFINITY", "1e+300", "3.0f", "(-9223372036854775807ll - 1)", "255", "1", "7u"]
