"""The op table: every claim that a row makes is attacked, and false claims are planted to see that the attack works."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from strategies import one_op

from minigraph.errors import GraphError
from minigraph.fuzz import agree, evaluate, within_bound
from minigraph.ir import Builder
from minigraph.ops import OPS, PURE, REQUIRED, Attrs, Kind, Op, infer, make_attrs
from minigraph.random_graphs import ACCEPTED, APART, GROWN, ORDINARY, SPECIAL
from minigraph.text import parse_element
from minigraph.types import DOMAINS, DTYPES, Const, Type, parse_type, same_bits, type_of

TRIES = 60


def nodes_of(op: str):
    """Random nodes of one operation that run: (node, its operands' arrays, its value)."""
    for index in range(TRIES):
        made = one_op(op, index)
        if made is not None:
            graph, inputs, name = made
            values, _, error = evaluate(graph, inputs)
            if error is None:
                node = graph[name]
                yield node, [values[operand] for operand in node.inputs], values[name]


# ---- types --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", [op for op in GROWN if OPS[op].kind is not Kind.EFFECT])
def test_infer_says_what_numpy_gives(op):
    found = list(nodes_of(op))
    assert len(found) > TRIES / 3, "the generator hardly ever makes this operation run"
    for node, _, value in found:
        assert type_of(value) == node.type
    shapes = {node.type.shape for node, _, _ in found}
    assert () in shapes or OPS[op].kind not in (Kind.ELEMENTWISE, Kind.REDUCTION) or op in ("cumsum", "sort")
    assert any(0 in shape for shape in shapes), "no zero-size result was tried"


def test_the_generator_knows_every_row():
    assert {*GROWN, *APART, "input", "const"} == set(OPS)


@pytest.mark.parametrize("op", [op for op in GROWN if OPS[op].kind in PURE])
def test_a_value_depends_on_values_not_on_strides(op):
    """The same values behind other strides: the same bits, but for the rounding of float sums and the row's ulps."""
    for node, arrays, value in nodes_of(op):
        for turn in (reversed_strides, column_major, spread_out):
            with np.errstate(all="ignore"):
                again = OPS[op].numpy(*map(turn, arrays), **dict(node.value or ()))
            assert agree(node, arrays, np.asarray(again), value), (node, arrays)


def reversed_strides(array):
    return array[(slice(None, None, -1),) * array.ndim].copy()[(slice(None, None, -1),) * array.ndim]


def column_major(array):
    return array.copy(order="F")


def spread_out(array):
    """Every second element of a larger array; equal rows share one row, by a zero stride."""
    if array.ndim == 0:
        return array
    if array.shape[0] > 1 and same_bits(array, np.broadcast_to(array[:1], array.shape)):
        return np.broadcast_to(array[:1].copy(), array.shape)
    wide = np.zeros(tuple(2 * dim for dim in array.shape), array.dtype)
    view = wide[(slice(None, None, 2),) * array.ndim]
    view[...] = array
    return view


# ---- flags --------------------------------------------------------------------------------------------------------


def pairs(dtype: str):
    """Every pair of special and ordinary values, as full arrays, as scalars with arrays, and as column with row."""
    pool = np.concatenate([SPECIAL[dtype], ORDINARY[dtype]])
    a, b = (np.ascontiguousarray(side) for side in np.broadcast_arrays(pool[:, None], pool[None, :]))
    yield a, b
    yield pool[:, None], pool[None, :]
    for one in pool:
        yield pool, np.array(one)


def refute(row: Op, claim: str) -> str:
    """A counterexample to a claim of a row, in its whole domain; empty where the claim stands."""
    with np.errstate(all="ignore"):
        for dtype in ACCEPTED[row.name]:
            pool = np.concatenate([SPECIAL[dtype], ORDINARY[dtype]])
            for name, left, right in instances(row, claim, dtype, pool):
                if not same_bits(left, right):
                    return f"{row.name} {claim} fails in {dtype}: {name}"
    return ""


def instances(row: Op, claim: str, dtype: str, pool: np.ndarray):
    """Pairs of arrays that the claim says are equal."""
    f = row.numpy
    if claim == "commutative":
        for a, b in pairs(dtype):
            yield f"{a!r}, {b!r}", f(a, b), f(b, a)
    elif claim == "right_identity":
        for domain, literal in row.right_identity:
            if DOMAINS[dtype[0]] == domain:
                e = np.array(parse_element(literal, dtype), DTYPES[dtype])
                for x in (pool, pool[::2], pool[:1], pool[:0], *map(np.array, pool)):
                    yield f"{x!r}, {literal}", f(x, e), x
                    yield f"{x!r}, {literal}", f(x, np.full(x.shape, e)), x
    elif claim == "idempotent" and row.arity == (2, 2):
        yield f"{pool!r}", f(pool, pool), pool
    elif claim == "idempotent":
        yield f"{pool!r}", f(f(pool)), f(pool)
    elif claim == "involution":
        yield f"{pool!r}", f(f(pool)), pool


CLAIMS = ("commutative", "right_identity", "idempotent", "involution")


@pytest.mark.parametrize(("op", "claim"), [(row.name, claim) for row in OPS.values() for claim in CLAIMS if getattr(row, claim)])
def test_a_claim_stands(op, claim):
    assert not refute(OPS[op], claim)


@pytest.mark.parametrize("op", [row.name for row in OPS.values() if row.name in ACCEPTED and row.arity == (2, 2) and not row.commutative])
def test_what_is_not_said_to_commute_does_not(op):
    assert refute(OPS[op], "commutative"), f"{op} commutes: say so in its row"


PLANTED = [
    ("maximum", {"commutative": True}),
    ("minimum", {"commutative": True}),
    ("sub", {"commutative": True}),
    ("mod", {"commutative": True}),
    ("add", {"right_identity": (("float", "0.0"),)}),
    ("sub", {"right_identity": (("float", "-0.0"),)}),
    ("maximum", {"right_identity": (("float", "0.0"),)}),
    ("floor_div", {"right_identity": (("float", "1"),)}),
    ("pow", {"right_identity": (("signed", "0"),)}),
    ("neg", {"idempotent": True}),
    ("sqrt", {"idempotent": True}),
    ("add", {"idempotent": True}),
    ("bitwise_xor", {"idempotent": True}),
    ("abs", {"involution": True}),
    ("rsqrt", {"involution": True}),
]


@pytest.mark.parametrize(("op", "claim"), PLANTED, ids=str)
def test_a_planted_false_claim_is_refuted(op, claim):
    assert refute(replace(OPS[op], **claim), *claim)


# ---- flops and attributes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", [op for op in GROWN if OPS[op].kind in PURE])
def test_flops(op):
    for node, arrays, _ in nodes_of(op):
        flops = OPS[op].flops(tuple(map(type_of, arrays)), node.value, node.type)
        assert isinstance(flops, int) and flops >= 0
        if OPS[op].kind is Kind.LAYOUT:
            assert flops == 0
        elif all(array.size for array in arrays) and node.type.size:
            assert flops >= node.type.size


def test_flops_of_contractions():
    a, b = parse_type("f32[7,2,3]"), parse_type("f32[3,5]")
    attrs = make_attrs(OPS["matmul"], {})
    assert OPS["matmul"].flops((a, b), attrs, infer(OPS["matmul"], (a, b), attrs)) == 2 * 7 * 2 * 3 * 5
    x, w = parse_type("f32[1,4,5,5]"), parse_type("f32[8,2,3,3]")
    attrs = make_attrs(OPS["conv2d"], {"groups": 2})
    assert OPS["conv2d"].flops((x, w), attrs, infer(OPS["conv2d"], (x, w), attrs)) == 2 * (8 * 3 * 3) * (2 * 3 * 3)


@pytest.mark.parametrize("row", OPS.values(), ids=lambda row: row.name)
def test_defaults(row):
    """Leaving a default out and writing it down are one value; what has no default must be given."""
    defaults = {name: default for name, _, default in row.attrs}
    if REQUIRED in defaults.values():
        with pytest.raises(GraphError, match=f"{row.name} needs the attribute"):
            make_attrs(row, {})
    else:
        assert make_attrs(row, {}) == make_attrs(row, defaults) == (Attrs(**defaults) if defaults else None)
    with pytest.raises(GraphError, match="has no attribute 'colour'"):
        make_attrs(row, {"colour": 1})


def test_attributes_are_one_value_for_one_meaning():
    """Lists, NumPy integers and negative axes; bools are not ints, and the other way round."""
    sum_ = OPS["sum"]
    assert make_attrs(sum_, {"axis": [np.int64(1)]}) == make_attrs(sum_, {"axis": (1,), "keepdims": False})
    assert type(make_attrs(sum_, {"axis": [np.int32(1)]}).axis[0]) is int
    for wrong in ({"axis": (True,)}, {"axis": 1}, {"axis": (1.0,)}, {"axis": (1,), "keepdims": 1}, {"axis": (2**63,)}, {"axis": None}):
        with pytest.raises(GraphError, match="sum's attribute"):
            make_attrs(sum_, wrong)


# ---- refusals -----------------------------------------------------------------------------------------------------

REFUSALS = [  # operation, operands' types, attributes, what the sentence says
    ("add", "f32[2]", {}, "add takes 2 operands, got 1"),
    ("neg", "f32[2] f32[2]", {}, "neg takes 1 operand, got 2"),
    ("concat", "", {"axis": 0}, "concat takes 1 or more operands, got 0"),
    ("print", "f32[] f32[] f32[]", {}, "print takes 1 to 2 operands, got 3"),
    ("add", "f32[2] f64[2]", {}, "different dtypes: f32[2], f64[2]"),
    ("add", "bool[2] bool[2]", {}, "an operand is bool[2]; this takes float or signed or unsigned"),
    ("add", "f32[2,3] f32[3,2]", {}, "do not broadcast: axis -2 is 2 and 3"),
    ("div", "i32[] i32[]", {}, "an operand is i32[]"),
    ("exp", "i8[2]", {}, "an operand is i8[2]"),
    ("left_shift", "f32[] f32[]", {}, "an operand is f32[]"),
    ("bitwise_and", "f32[] f32[]", {}, "an operand is f32[]"),
    ("where", "f32[] f32[] f32[]", {}, "where's condition is f32[], not bool"),
    ("where", "bool[] f32[] i32[]", {}, "different dtypes"),
    ("where", "bool[3] f32[2] f32[]", {}, "do not broadcast"),
    ("cast", "f32[]", {}, "cast needs the attribute 'dtype'"),
    ("cast", "f32[]", {"dtype": "float32"}, "unknown dtype 'float32'"),
    ("cast", "token[]", {"dtype": "f32"}, "an operand is token[]"),
    ("quantize", "f32[] f32[]", {"dtype": "f16"}, "quantize makes integers, not f16"),
    ("dequantize", "f32[] f32[]", {}, "an operand is f32[]"),
    ("sum", "f32[2,3]", {"axis": (2,)}, "axis 2 is out of range for rank 2"),
    ("sum", "f32[2,3]", {"axis": (1, -1)}, "name one axis twice"),
    ("sum", "bool[2]", {"axis": (0,)}, "an operand is bool[2]"),
    ("max", "f32[0,3]", {"axis": (0,)}, "is empty along axis [0]"),
    ("argmax", "f32[0]", {"axis": 0}, "is empty along axis"),
    ("argmax", "f32[]", {"axis": 0}, "axis 0 is out of range for rank 0"),
    ("mean", "i32[2]", {"axis": (0,)}, "an operand is i32[2]; this takes float"),
    ("any", "f32[2]", {"axis": (0,)}, "an operand is f32[2]; this takes bool"),
    ("matmul", "f32[] f32[2]", {}, "matmul takes no 0-d operand"),
    ("matmul", "f32[2,3] f32[2,3]", {}, "inner dimensions are 3 and 2"),
    ("matmul", "f32[3] f32[3,2]", {"transpose_a": True}, "rank 2 or more"),
    ("matmul", "f32[2,1,3] f32[5,3,1]", {}, "do not broadcast"),
    ("conv2d", "f32[1,2,3] f32[1,2,3,3]", {}, "conv2d takes x"),
    ("conv2d", "f32[1,2,3,3] f32[1,2,5,5]", {}, "does not fit the padded image"),
    ("conv2d", "f32[1,3,3,3] f32[2,2,1,1]", {}, "3 channels do not fit"),
    ("conv2d", "f32[1,2,3,3] f32[1,2,1,1]", {"stride": (0, 1)}, "stride is two positive numbers"),
    ("conv2d", "f32[1,2,3,3] f32[1,2,1,1]", {"padding": (0, 0, 0, -1)}, "padding is top, bottom, left, right"),
    ("reshape", "f32[2,3]", {"shape": (4,)}, "has 6 elements, [4] has 4"),
    ("reshape", "f32[2,3]", {"shape": (-1,)}, "no negative dimension"),
    ("reshape", "f32[0]", {"shape": (0, 2**62)}, "more elements than memory can address"),
    ("transpose", "f32[2,3]", {"perm": (0, 0)}, "is not a permutation of 2 axes"),
    ("broadcast_to", "f32[2,3]", {"shape": (3,)}, "does not broadcast to [3]"),
    ("broadcast_to", "f32[2]", {"shape": (2**40, 2**40, 2)}, "more elements than memory can address"),
    ("concat", "f32[2,3] f32[3,2]", {"axis": 0}, "the other axes differ"),
    ("concat", "f32[]", {"axis": 0}, "axis 0 is out of range"),
    ("slice", "f32[5]", {"start": (0,), "stop": (6,)}, "which has 5"),
    ("slice", "f32[5]", {"start": (-1,), "stop": (3,)}, "of axis 0"),
    ("slice", "f32[5]", {"start": (0,), "stop": (3,), "step": (0,)}, "a step is never 0"),
    ("slice", "f32[5]", {"start": (0, 0), "stop": (3, 3)}, "needs 1 starts"),
    ("pad", "f32[2] f32[1]", {"low": (1,), "high": (1,)}, "pad's value is 0-d"),
    ("pad", "f32[2] f32[]", {"low": (1,), "high": (-1,)}, "none negative"),
    ("take", "f32[2] f32[1]", {}, "an operand is f32[1]"),
    ("take", "f32[] i32[]", {}, "axis 0 is out of range"),
    ("update_slice", "f32[2] f32[3] i32[]", {}, "does not fit into f32[2]"),
    ("update_slice", "f32[2] f32[1] i32[1]", {}, "start is 0-d"),
    ("random", "", {"shape": (2,), "site": 0, "dtype": "f16"}, "random draws are f32 or f64"),
    ("random", "", {"shape": (2,), "site": 0, "dist": "gauss"}, "unknown distribution 'gauss'"),
    ("random", "", {"shape": (2,), "site": -1}, "a site is a number from 0 up"),
    ("random", "", {"shape": (2,)}, "random needs the attribute 'site'"),
    ("assert_close", "f32[2] f32[3]", {}, "do not broadcast"),
    ("assert_finite", "f32[2] f32[]", {}, "the token of the effect before"),
    ("input", "", {}, "inputs and constants carry their own type"),
    ("relu", "f32[2]", {}, "unknown op 'relu'"),
    ("maxium", "f32[2] f32[2]", {}, "did you mean 'maximum'"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "types", "attrs", "sentence"), REFUSALS, ids=str)
def test_a_refusal_is_a_sentence(op, types, attrs, sentence):
    builder = Builder()
    inputs = [builder.input(f"x{i}", parse_type(text)) for i, text in enumerate(types.split())]
    with pytest.raises(GraphError) as caught:
        builder.emit(op, *inputs, **attrs)
    assert sentence in str(caught.value)


# ---- what rows say beside types -----------------------------------------------------------------------------------


def test_shifts_and_divisions_by_zero_are_defined():
    """C leaves these open; NumPy does not, and folding relies on it."""
    seven = np.array(7, np.int32)
    with np.errstate(all="ignore"):
        assert OPS["left_shift"].numpy(seven, np.int32(32)) == 0
        assert OPS["right_shift"].numpy(-seven, np.int32(40)) == -1
        assert OPS["floor_div"].numpy(seven, np.int32(0)) == 0 and OPS["mod"].numpy(seven, np.int32(0)) == 0
        assert OPS["floor_div"].numpy(-seven, np.int32(2)) == -4 and OPS["mod"].numpy(-seven, np.int32(2)) == 1


@pytest.mark.parametrize(("x", "w", "groups"), [((0, 1, 3, 3), (2, 1, 2, 2), 1), ((1, 0, 3, 3), (2, 0, 2, 2), 1),
                                                ((1, 1, 3, 3), (0, 1, 2, 2), 1), ((1, 2, 3, 3), (0, 1, 2, 2), 2)])  # fmt: skip
def test_conv2d_of_nothing(x, w, groups):
    attrs = make_attrs(OPS["conv2d"], {"groups": groups})
    found = OPS["conv2d"].numpy(np.ones(x, np.float32), np.ones(w, np.float32), **dict(attrs))
    assert found.shape == infer(OPS["conv2d"], (Type("f32", x), Type("f32", w)), attrs).shape and not found.any()


def test_a_constant_never_changes_and_has_a_type():
    assert not Const("f32", (), bytearray(4)).array.flags.writeable
    for dtype, shape, data in (("f33", (), b""), ("token", (), b""), ("f32", [1], bytes(4)), ("f32", (True,), bytes(4)),
                               ("f32", (0, 2**70), b""), ("f32", (1,) * 33, bytes(4)), ("f32", (2,), bytes(4))):
        with pytest.raises(GraphError):
            Const(dtype, shape, data)


def test_quantize_rounds_half_to_even_clips_and_has_no_nan():
    x = np.array([0.5, 1.5, 2.5, -0.5, 1000, -1000, np.inf, np.nan], np.float32)
    assert OPS["quantize"].numpy(x, np.float32(1), "i8").tolist() == [0, 2, 2, 0, 127, -128, 127, 0]


def test_random_depends_on_seed_and_site_only():
    draw = OPS["random"].numpy
    a = draw(1, shape=(3,), dtype="f32", dist="normal", site=4)
    assert same_bits(a, draw(1, shape=(3,), dtype="f32", dist="normal", site=4))
    assert not same_bits(a, draw(1, shape=(3,), dtype="f32", dist="normal", site=5))
    assert not same_bits(a, draw(2, shape=(3,), dtype="f32", dist="normal", site=4))


@pytest.mark.parametrize("op", [row.name for row in OPS.values() if row.ulp and row.arity == (1, 1)])
def test_ulp_bounds_numpys_own_error(op):
    """float32 against float64, rounded: NumPy itself stays within what the row allows any executor."""
    x = np.linspace(-20, 20, 4001, dtype=np.float32)
    x = np.abs(x) + np.float32(1e-3) if op.startswith("log") else x
    exact = OPS[op].numpy(x.astype(np.float64))
    error = np.abs(OPS[op].numpy(x) - exact) / np.spacing(np.abs(exact).astype(np.float32))
    assert error.max() <= OPS[op].ulp


def test_kinds_decide_what_may_happen():
    facts = {row.name: (row.foldable, row.mergeable, row.removable) for row in OPS.values()}
    assert facts["input"] == (False, False, False)
    assert facts["const"] == (False, True, True)
    assert facts["add"] == facts["sum"] == facts["matmul"] == facts["reshape"] == (True, True, True)
    assert facts["random"] == (False, False, True)
    assert facts["print"] == facts["assert_close"] == (False, False, False)


def test_type_facts():
    type = Type("f32", (8, 0, 4))
    assert str(type) == "f32[8,0,4]" and type.size == 0 and type.nbytes == 0 and type.domain == "float"
    assert parse_type(" f32 [ 8 , 4 ] ") == Type("f32", (8, 4)) and parse_type("bool[]").nbytes == 1
    for wrong in ("f32", "f32[", "f32[-1]", "f32[a]", "f32[1]]", "g32[]", "f32[٣]", "f32[1,,2]", "f32[2**3]", "f32[99999999999]" * 2):
        with pytest.raises(GraphError):
            parse_type(wrong)


def test_the_rounding_bound_is_tight_enough_to_catch_a_mistake():
    """A dropped term, another axis or a relative error of 1 % is beyond it; any order of summation is within."""
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((4, 50)).astype(np.float32), rng.standard_normal((50, 4)).astype(np.float32)
    builder = Builder()
    a, b = builder.input("a", "f32[4,50]"), builder.input("b", "f32[50,4]")
    nodes = [(builder.emit("sum", a, axis=(1,)), [x]), (builder.emit("mean", a, axis=(1,)), [x]),
             (builder.emit("cumsum", a, axis=1), [x]), (builder.emit("matmul", a, b), [x, w])]  # fmt: skip
    for name, arrays in nodes:
        node = builder.nodes[name]
        call = OPS[node.op].numpy
        right = call(*arrays, **dict(node.value))
        backwards = call(*(array[:, ::-1] if array.shape == x.shape else array[::-1] for array in arrays), **dict(node.value))
        assert within_bound(node, arrays, right) and (node.op == "cumsum" or within_bound(node, arrays, backwards))
        dropped = [np.where(np.arange(50) == 7, 0, x).astype(np.float32), *arrays[1:]]
        assert not within_bound(node, arrays, call(*dropped, **dict(node.value)))
        assert not within_bound(node, arrays, right * np.float32(1.01))
    node = builder.nodes[builder.emit("max", a, axis=(1,))]
    assert within_bound(node, [x], x.max(1)) and not within_bound(node, [x], np.nextafter(x.max(1), np.float32(9)))
