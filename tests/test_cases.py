"""The inputs that broke real compilers, one test a case; and that the runner notices what is wrong."""

import json
import subprocess
import sys

import pytest
import run_cases
from run_cases import CASES, check_case, load, main, modes

ALL = load()


@pytest.mark.parametrize("case", ALL, ids=[case["id"] for case in ALL])
def test_case(case):
    outcome = check_case(case)
    if outcome.status == "skipped":
        pytest.skip("; ".join(outcome.said))
    assert outcome.status == "right", "\n".join(outcome.said)
    assert outcome.runs >= 22 * len(modes(case)) and "not checked" not in outcome.structural


@pytest.mark.parametrize("case", [case for case in ALL if case["wrong_expr"]], ids=lambda case: case["id"])
def test_what_the_buggy_rewrite_gave_is_found_wrong(case):
    """Each mode of the case with the wrong expression in place of the right one."""
    outcome = run_cases.Outcome(case["id"])
    for as_inputs in modes(case):
        run_cases.check_mode({**case, "expr": case["wrong_expr"]}, as_inputs, outcome)
        if outcome.status == "skipped":
            pytest.skip("; ".join(outcome.said))
        assert outcome.status == "wrong", as_inputs
        outcome.status = "right"


@pytest.mark.parametrize("expected, got, why", [
    ([0.0], "np.float32([-0.0])", "-0.0"),
    (["nan"], "np.float32([1.0])", "nan"),
    ([1.0], "np.float64([1.0])", "float64"),
    ([1.0], "np.float32([[1.0]])", "1, 1"),
    ([1.0], "(np.float32([1.0]), np.float32([1.0]))", "2 outputs"),
])  # fmt: skip
def test_exact_means_dtype_shape_bits_and_number(expected, got, why):
    case = {"id": "t", "inputs": {}, "expr": got, "compare": "exact", "expect_error": None, "structural": None,
            "expect": [{"dtype": "float32", "shape": [1], "value": expected}]}
    outcome = check_case(case)
    assert outcome.status == "wrong" and why in outcome.said[0]
    assert check_case({**case, "expr": "np.float32([float(v) for v in %r])" % expected}).status == "right"


def test_an_expected_error_must_come():
    case = {"id": "t", "inputs": {"i": {"dtype": "int64", "shape": [1], "value": [3]}}, "compare": "exact",
            "expr": "np.arange(3)[i]", "expect": [], "expect_error": "IndexError", "structural": None}
    assert check_case(case).status == "right"
    for wrong in ({"expr": "i"}, {"expect_error": "ZeroDivisionError"}):
        assert check_case({**case, **wrong}).status == "wrong"


def test_a_function_without_a_row_is_skipped_with_the_reason(tmp_path, capsys):
    case = {"id": "new", "kind": "k", "inputs": {"x": {"dtype": "float32", "shape": [], "value": "inf"}},
            "compare": "close", "expr": "np.arctan2(x, x)", "expect": [], "expect_error": None, "structural": None}
    path = tmp_path / "other.json"
    path.write_text(json.dumps([case]))
    assert main(["--cases", str(path)]) == 0
    said = capsys.readouterr().out
    assert "new      skipped" in said and "np.arctan2 is not known" in said and "0 right, 0 wrong, 1 skipped" in said


def test_the_command_line():
    command = [sys.executable, str(CASES.parent / "run_cases.py"), "--only", "B34b"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=CASES.parents[1])
    assert done.returncode == 0 and "1 right, 0 wrong, 0 skipped, 64 runs" in done.stdout, done.stderr
