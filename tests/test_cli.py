"""The command line: what each command prints, and a sentence and a status for everything that can be wrong."""

import importlib.util
import io
import json
import os
import subprocess
import sys
import types
import zipfile

import numpy as np
import pytest

from minigraph import __version__, cli, errors, parse
from minigraph.command import tables
from minigraph.cli import COMMANDS, main

WASTE = """\
graph waste(x: f32[4]) -> (y) {
  a = const(2.0)
  b = const(3.0)
  c = add(a, b)
  d = mul(x, c)   # model.py:3
  e = mul(x, c)
  one = const(1.0)
  z = mul(d, one)
  y = add(z, e)
  dead = exp(y)
  return y
}
"""

MODEL = """\
import numpy as np
print("this is not part of the output")

def mlp(x, w: "f32[4,4]", scale=2):
    h = x @ w
    return np.maximum(h, 0.0) * scale

def defaults(x="f32[3]", mode="fast", count=2):
    return x * count

def only(a, /, name, *, b):
    return a + name + b

def any_of(**values):
    return values["x"] + values["f"]

def fails(x: "f32[2]"):
    return helper(x)

def helper(x):
    return 1 / 0

def branches(x: "f32[2]"):
    if x[0] > 0:
        return x
    return -x

def misspelt(x: "f23[2]"):
    return x

table = {}
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory with a graph and a Python file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MINIGRAPH_DEBUG", raising=False)
    (tmp_path / "waste.mg").write_text(WASTE)
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


@pytest.fixture
def cmd(here, capsys):
    """Run one command line in this process: (status, standard output, standard error)."""

    def run(*argv):
        status = main([str(one) for one in argv])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.fixture
def ok(cmd):
    """The output of a command line that must succeed."""

    def run(*argv):
        status, out, err = cmd(*argv)
        assert status == 0, err
        return out

    return run


@pytest.fixture
def bad(cmd):
    """The error of a command line that must fail, without output and without a traceback."""

    def run(*argv, status=1):
        got, out, err = cmd(*argv)
        assert (got, out) == (status, ""), err
        *before, message = err.partition("minigraph: error: ")
        assert before[1] and "Traceback" not in err
        return message

    return run


def feed(monkeypatch, data: bytes):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def process(*argv, **options):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **options.pop("env", {})}
    return subprocess.run([sys.executable, "-m", "minigraph", *argv], capture_output=True, timeout=120, env=env, **options)


# ---- the whole ------------------------------------------------------------------------------------------------


def test_help_names_every_command_and_what_a_python_target_does(ok):
    text = ok("--help")
    assert text == ok("-h")
    assert all(f"\n  {name} " in text for name in COMMANDS)
    assert "examples:" in text
    for name in COMMANDS:
        assert f"usage: minigraph {name}" in ok(name, "--help")
    assert "the file is run" in " ".join(ok("show", "--help").split())


def test_version(ok):
    assert ok("--version") == f"minigraph {__version__}\n"


def test_no_command_shows_the_overview_on_standard_error(cmd):
    status, out, err = cmd()
    assert (status, out) == (2, "")
    assert err.startswith("usage: minigraph COMMAND")


def test_python_m_minigraph_is_quick_and_imports_no_more_than_it_needs(here):
    code = ("import sys; from minigraph.cli import main; main(['--version']);"
            "print([name for name in ('minigraph.drawing', 'minigraph.tracing', 'minigraph.models', 'matplotlib', 'networkx')"
            " if name in sys.modules])")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=60)
    assert done.stdout == f"minigraph {__version__}\n[]\n", done.stderr
    assert process("--version").stdout.decode() == f"minigraph {__version__}\n"


@pytest.mark.parametrize("argv, said", [
    (["shwo", "waste.mg"], "no command 'shwo': did you mean 'show'?"),
    (["zzz"], "see minigraph --help"),
    (["show"], "arguments are required: TARGET (see minigraph show --help)"),
    (["opt", "waste.mg", "--pases", "fold"], "unknown option '--pases': did you mean '--passes'?"),
    (["opt", "waste.mg", "--pass", "fold"], "unknown option '--pass'"),  # abbreviations are not taken
    (["opt", "waste.mg", "--fast"], "--fast: expected one argument"),
    (["doctor", "now"], "unexpected argument 'now'"),
    (["run", "waste.mg", "--seed", "-1"], "'-1' is not a whole number from 0 on"),
    (["run", "waste.mg", "--seed", "x"], "'x' is not a whole number from 0 on"),
    (["run", "waste.mg", "-o", "y.txt"], "its name must end in .npz"),
    (["opt", "waste.mg", "-o", "y.npz"], "its name must end in .mg"),
    (["draw", "waste.mg", "-o", "y.gif"], "its name must end in .svg or .png or .dot or .html"),
    (["draw", "waste.mg", "--steps"], "-o steps.html"),
    (["draw", "waste.mg", "--steps", "-o", "y.svg"], "its name must end in .html"),
    (["why", "waste.mg"], "arguments are required: NAME"),
    (["generate"], "arguments are required: PROMPT"),
    (["bench", "speed"], "no benchmark is named 'speed': there are passes"),
    *(([*argv, ""], f"argument {name}: it is empty, and a name is wanted") for argv, name in (
        (["launches", "waste.mg", "--explain"], "--explain"), (["run", "waste.mg", "-o"], "-o"), (["run", "waste.mg", "--inputs"], "--inputs"),
        (["opt", "waste.mg", "-o"], "-o"), (["draw", "waste.mg", "-o"], "-o"), (["show"], "TARGET"), (["plan"], "FILE.csv"),
        (["plan", "a.csv", "--draw"], "--draw"), (["bench", "gpu", "--out"], "--out"))),
    (["code", "waste.mg", "--threads", "0"], "'0' is not a whole number from 1 on"),
    (["generate", "hello", "--threads", "0"], "'0' is not a whole number from 1 on"),
    *((["fuzz", *backend, option, value], f"'{value}' is not a whole number from {least} on")
      for backend in ([], ["--backend", "numpy"]) for option, value, least in (
          ("--graphs", "-4", 0), ("--graphs", "0", 1), ("--graphs", "x", 0), ("--jobs", "0", 1), ("--seed", "-1", 0), ("--start", "-1", 0))),
    (["fuzz", "--backend", "zz"], "argument --backend: invalid choice: 'zz'"),
    (["fuzz", "--backends", "c"], "unknown option '--backends': did you mean '--backend'?"),
    (["fuzz", "--strong"], "unknown option '--strong'"),
    *((["plan", "a.csv", "--planner", "exact", "--seconds", value], f"'{value}' is not a number above 0") for value in ("-1", "0", "x", "nan", "inf")),
    (["plan", "a.csv", "--capacity", "10"], "--capacity is of the search: add --planner exact, or leave it out"),
    (["plan", "a.csv", "--seconds", "1", "--seed", "0"], "--seconds and --seed are of the search: add --planner exact, or leave them out"),
    (["why", "model.py:mlp", "x=f32[8,4]", "w=f32[4,4]", "y"], "comes before the types: minigraph why model.py:mlp y 'x=f32[8,4]'"),
    (["code", "waste.mg", "--threads", "2", "--dialect", "cuda"], "--threads is of C"),
    (["generate", "hello", "--threads", "2", "--backend", "numpy"], "--threads is of the back end c"),
    (["generate", "hello", "--plain", "--backend", "c"], "it goes with neither --backend nor --threads"),
])  # fmt: skip
def test_a_wrong_command_line_is_status_2_and_one_sentence(bad, argv, said):
    message = bad(*argv, status=2)
    assert said in message
    assert message.count("\n") == 1


# ---- show -----------------------------------------------------------------------------------------------------


def test_show_prints_text_that_parses_to_the_same_graph(ok):
    assert parse(ok("show", "waste.mg")) == parse(WASTE)
    assert parse(ok("show", "waste.mg", "--stats")) == parse(WASTE)
    assert " : f32" not in ok("show", "waste.mg", "--no-types")
    assert "# model.py:3" in ok("show", "waste.mg", "--origins")
    assert "model.py" not in ok("show", "waste.mg")


def test_show_stats_counts(ok):
    lines = ok("show", "waste.mg", "--stats").splitlines()
    assert [line.split() for line in lines if line.startswith("#")][:2] == [["#", "nodes", "10"], ["#", "launches", "6"]]


def test_show_json(ok):
    shown = json.loads(ok("show", "waste.mg", "--json"))
    assert parse(shown["text"]) == parse(WASTE)
    assert shown["inputs"] == {"x": "f32[4]"} and shown["outputs"] == {"y": "y"}
    assert shown["nodes"][1] == {"name": "a", "op": "const", "inputs": [], "type": "f32[]", "origin": [], "value": "2.0"}
    assert shown["stats"]["launches"] == 6


def test_show_reads_standard_input(ok, monkeypatch):
    feed(monkeypatch, WASTE.encode())
    assert parse(ok("show", "-")) == parse(WASTE)


def test_constants_in_a_table_beside_the_text_are_found(ok, here):
    (here / "big.py").write_text("import numpy as np\nw = np.arange(20, dtype='f4')\ndef f(x: 'f32[20]'): return x + w\n")
    assert ok("opt", "big.py:f", "-q", "-o", "big.mg") == ""
    assert sorted(file.name for file in here.glob("big.*")) == ["big.mg", "big.npz", "big.py"]
    assert "const(@" in ok("show", "big.mg")
    assert json.loads(ok("run", "big.mg", "-i", "x=1", "--json"))["outputs"]["out"]["value"] == list(range(1, 21))


# ---- Python targets ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("argv", [
    ["model.py:mlp", "x=f32[8,4]"],
    ["model.py:mlp", "--spec", "x=f32[8,4]"],
    ["--no-types", "model.py:mlp", "--origins", "x = f32[8, 4]"],
])  # fmt: skip
def test_a_function_is_traced_with_types_from_the_command_and_from_its_annotations(ok, argv):
    text = ok("show", *argv)
    assert text.startswith("graph mlp(x: f32[8,4], w: f32[4,4]) -> ")
    assert "this is not part" not in text


def test_what_the_file_prints_goes_to_standard_error(cmd):
    status, out, err = cmd("show", "model.py:mlp", "x=f32[8,4]", "--json")
    assert status == 0 and json.loads(out)["name"] == "mlp"
    assert err == "this is not part of the output\n"


def test_every_kind_of_parameter(ok):
    assert "mlp(x: f32[2,4], w: f32[4,4], scale: f32[])" in ok("show", "model.py:mlp", "x=f32[2,4]", "scale=f32[]")
    assert "defaults(x: f32[3])" in ok("show", "model.py:defaults")
    assert "defaults(x: f64[])" in ok("show", "model.py:defaults", "x=f64[]")
    assert "only(a: f32[2], name: f32[2], b: f32[2])" in ok("show", "model.py:only", "b=f32[2]", "name=f32[2]", "a=f32[2]")
    assert "any_of(x: i32[], f: i32[])" in ok("show", "model.py:any_of", "x=i32[]", "f=i32[]")


def test_postponed_annotations_and_modules_beside_the_file(ok, here):
    (here / "sub").mkdir()
    (here / "sub" / "beside.py").write_text("def double(x): return x + x\n")
    (here / "sub" / "late.py").write_text("from __future__ import annotations\nfrom beside import double\n"
                                          "def f(x: 'f32[2]') -> object: return double(x)\n"
                                          "if __name__ == '__main__': raise SystemExit('not a program here')\n")
    path = list(sys.path)
    assert "add(x, x)" in ok("show", "sub/late.py:f")
    assert sys.path == path


@pytest.mark.parametrize("argv, said", [
    (["model.py"], "name one: model.py:mlp, model.py:defaults"),
    (["model.py:"], "name one: model.py:mlp"),
    (["model.py:mpl"], "no function 'mpl': did you mean 'mlp'?"),
    (["model.py:zzzzz"], "its functions are mlp, defaults"),
    (["model.py:table"], "'table' in model.py is of type dict, not a function"),
    (["model.py:mlp"], "needs the types of x: add them to the command, like 'x=f32[8,4]'"),
    (["model.py:mlp", "x"], "'x' is not NAME=TYPE, like 'x=f32[8,4]'"),
    (["model.py:mlp", "x=f32"], "x=f32: 'f32' is not a type"),
    (["model.py:mlp", "x=f23[2]"], "x=f23[2]: unknown dtype 'f23'\n  did you mean 'f32'?"),
    (["model.py:mlp", "x=f32[2,4]", "--spec", "x=f32[2,4]"], "'x' is given two types"),
    (["model.py:mlp", "x=f32[8,4]", "y=f32[2]"], "'y' is no parameter of model.py:mlp"),
    (["model.py:mlp", "x=f32[8,3]"], "model.py:5: "),
    (["model.py:misspelt"], 'x: "f23[2]": unknown dtype'),
    (["model.py:branches"], "model.py:24: "),
    (["missing.py:f"], "missing.py: No such file or directory"),
    (["waste.mg", "x=f32[4]"], "'x=f32[4]' is not used: 'waste.mg' states its own types"),
])  # fmt: skip
def test_a_wrong_python_target_is_a_sentence(bad, argv, said):
    assert said in bad("show", *argv)


def test_an_error_in_the_users_code_shows_the_users_frames_alone(bad):
    message = bad("show", "model.py:fails")
    assert message.startswith("model.py: tracing fails raised ZeroDivisionError: division by zero\n")
    assert 'File "model.py", line 18, in fails' in message
    assert 'File "model.py", line 21, in helper' in message
    assert message.count("File") == 2


@pytest.mark.parametrize("source, said", [
    (b"def f(:\n  pass\n", "wrong.py:1:7: invalid syntax\n    def f(:"),
    (b"import nosuchmodule\n", "running the file raised ModuleNotFoundError: No module named 'nosuchmodule'"),
    (b"import sys\nsys.exit(3)\n", "running the file raised SystemExit: 3"),
    (b"raise RuntimeError\n", "running the file raised RuntimeError: no reason given"),
    (b"f = '\xff'\n", "wrong.py:"),
    (b"f = '\x00'\n", "wrong.py"),
    (b"f = " + b"(" * 5000, "wrong.py"),
    (b"f = " + b"-" * 100_000 + b"1", "wrong.py"),
    (b"def f(x: 'f32[2]'):\n  return f(x)\n", "tracing f raised RecursionError"),
])  # fmt: skip
def test_a_python_file_that_does_not_run_is_a_sentence(bad, here, source, said):
    (here / "wrong.py").write_bytes(source)
    assert said in bad("show", "wrong.py:f")


def test_a_python_file_does_not_run_when_no_function_is_named(bad, here):
    (here / "trap.py").write_text("open('sprung', 'w')\ndef f(x): return x\n")
    assert "trap.py:f" in bad("show", "trap.py")
    assert not (here / "sprung").exists()


# ---- files that are not graphs ----------------------------------------------------------------------------------


@pytest.mark.parametrize("data, said", [
    (b"", ".mg:1:1: expected 'graph'"),
    (b"graph g(x: f32[2]) -> (y) {\n  y = neg(z)\n  return y\n}\n", ".mg:2:11: operand 'z' is not defined"),
    (b"graph g(x: f32[2]) -> (y) {\n  y = ngeg(x)\n  return y\n}\n", "did you mean 'neg'?"),
    (b"graph g(x: f32[2]) -> (x) {\n  return x\n}\ngraph", ".mg:4:1: text after"),
    (b"graph g(\xff", ".mg:1: byte 8 is not UTF-8 text"),
    (b"\x7fELF\x00\x00", ".mg:1:1"),
])  # fmt: skip
def test_text_that_is_no_graph_is_a_position_and_a_sentence(bad, here, monkeypatch, data, said):
    (here / "bad.mg").write_bytes(data)
    assert "bad" + said in bad("show", "bad.mg") or said in bad("show", "bad.mg")
    feed(monkeypatch, data)
    assert "<stdin>" in bad("show", "-")


def test_files_that_cannot_be_read_or_written(bad, here):
    (here / "folder.mg").mkdir()
    assert "absent.mg: No such file or directory" in bad("show", "absent.mg")
    assert "folder.mg: Is a directory" in bad("show", "folder.mg")
    assert "no/out.mg: No such file or directory" in bad("opt", "waste.mg", "-o", "no/out.mg")
    assert "no/out.npz: No such file or directory" in bad("run", "waste.mg", "-i", "x=1", "-o", "no/out.npz")
    assert "No such file or directory" in bad("draw", "waste.mg", "-o", "no/out.dot")
    assert "absent.npz: No such file or directory" in bad("run", "waste.mg", "--inputs", "absent.npz")
    assert "absent.npy: No such file or directory" in bad("run", "waste.mg", "-i", "x=absent.npy")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="permissions do not bind this user")
def test_a_file_without_permission(bad, here):
    (here / "waste.mg").chmod(0)
    assert "waste.mg: Permission denied" in bad("show", "waste.mg")


def test_a_closed_standard_input(bad, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    assert "standard input is closed" in bad("show", "-")


# ---- opt and why ------------------------------------------------------------------------------------------------


def test_opt_prints_the_difference_the_report_and_the_table(ok):
    text = ok("opt", "waste.mg")
    assert "-   a = const(2.0) : f32[]\n" in text and "+   c = const(5.0) : f32[]\n" in text
    assert "1. fold\n   fold: c: " in text and "cse: e -> d: " in text and "dead: dead -> nothing: " in text
    table = text[text.index("pass  "):].splitlines()
    assert table[0].split() == ["pass", "steps", "nodes", "launches", "bytes"]
    assert table[1].split() == ["(traced)", "0", "10", "6", "200"]
    assert table[4].split() == ["3.", "cse", "1", "8", "3", "116"]
    assert ok("opt", "waste.mg") == text


def test_opt_report_and_quiet(ok):
    report = ok("opt", "waste.mg", "--report")
    assert report.startswith("1. fold\n") and "pass  " in report
    quiet = ok("opt", "waste.mg", "--quiet")
    assert [node.name for node in parse(quiet).nodes] == ["x", "c", "d", "y"]


def test_opt_writes_what_it_prints_and_is_then_done(ok, here):
    quiet = ok("opt", "waste.mg", "-q")
    assert ok("opt", "waste.mg", "-q", "-o", "done.mg") == ""
    assert parse((here / "done.mg").read_text()) == parse(quiet)
    assert "nothing to do" in ok("opt", "done.mg", "--report")


def test_opt_takes_passes_and_flags(ok, here):
    (here / "zero.mg").write_text("graph g(x: f32[2]) -> (y) {\n  z = const(0.0)\n  y = add(x, z)\n  return y\n}\n")
    assert "add(x, z)" in ok("opt", "zero.mg", "-q")
    assert "add(x, z)" not in ok("opt", "zero.mg", "-q", "--fast", "nsz")
    assert "add(x, z)" not in ok("opt", "zero.mg", "-q", "--fast", "fast")
    assert "add(x, z)" in ok("opt", "zero.mg", "-q", "--fast", "nsz,arcp", "--passes", "fold, dce")
    assert ok("opt", "waste.mg", "-q", "--passes", "") == ok("show", "waste.mg")
    assert [line.split()[1] for line in ok("opt", "waste.mg", "--report", "--passes", "dce").splitlines()[-2:]] == ["dce"] * 2


def test_opt_json(ok):
    result = json.loads(ok("opt", "waste.mg", "--json"))
    assert parse(result["before"]["text"]) == parse(WASTE)
    assert result["table"][0] == {"pass": "(traced)", "steps": 0, "nodes": 10, "launches": 6, "bytes": 200}
    assert result["stages"][2]["pass"] == "cse"
    assert result["stages"][2]["steps"][0]["before"] == ["e"]


@pytest.mark.parametrize("argv, said", [
    (["--passes", "fodl"], "unknown pass 'fodl'\n  did you mean 'fold'?"),
    (["--fast", "nzs"], "unknown fast-math flag 'nzs'\n  did you mean 'nsz'?"),
])  # fmt: skip
def test_opt_suggests_the_nearest_pass_and_flag(bad, argv, said):
    assert said in bad("opt", "waste.mg", *argv)


def test_why(ok, bad):
    assert "'z' is gone" in ok("why", "waste.mg", "z") and "traced: z = mul(d, one)" in ok("why", "waste.mg", "z")
    assert "model.py:3" in ok("why", "waste.mg", "d")
    assert "traced: y = add(z, e)" in ok("why", "waste.mg", "y", "--passes", "dce")
    assert "model.py:5" in ok("why", "model.py:mlp", "h", "x=f32[2,4]")
    assert "no value is named 'deda'" in bad("why", "waste.mg", "deda")
    assert "did you mean 'dead'?" in bad("why", "waste.mg", "deda")


# ---- run --------------------------------------------------------------------------------------------------------


def test_run_prints_each_output(ok):
    assert ok("run", "waste.mg", "-i", "x=[1, 2, 3, -0.0]") == "y: f32[4]\n[10. 20. 30. -0.]\n"
    assert ok("run", "waste.mg", "-i", "x=1", "--opt") == "y: f32[4]\n[10. 10. 10. 10.]\n"


def test_run_keeps_large_outputs_short(ok, here):
    (here / "wide.mg").write_text("graph g(x: f32[100,100]) -> (y) {\n  y = neg(x)\n  return y\n}\n")
    assert len(ok("run", "wide.mg", "-i", "x=ones").splitlines()) < 20
    assert len(json.loads(ok("run", "wide.mg", "-i", "x=ones", "--json"))["outputs"]["y"]["value"]) == 100


def test_run_fills_inputs(ok, here):
    (here / "all.mg").write_text("graph g(f: f64[2,2], i: i8[3], u: u8[3], b: bool[3]) -> (f, i, u, b) {\n  return f, i, u, b\n}\n")
    every = [f"--input={name}=random" for name in "fiub"]
    outputs = json.loads(ok("run", "all.mg", *every, "--json"))["outputs"]
    assert [value["type"] for value in outputs.values()] == ["f64[2,2]", "i8[3]", "u8[3]", "bool[3]"]
    assert ok("run", "all.mg", *every) == ok("run", "all.mg", *every, "--seed", "0")
    assert ok("run", "all.mg", *every) == ok("run", "all.mg", *reversed(every))
    assert ok("run", "all.mg", *every) != ok("run", "all.mg", *every, "--seed", "1")
    assert ok("run", "all.mg", "-i", "f=zeros", "-i", "i=ones", "-i", "u=255", "-i", "b=[true,false,true]").split("\n")[-2] == (
        "[ True False  True]")


def test_run_json_has_no_bare_nan(ok):
    text = ok("run", "waste.mg", "-i", "x=[nan,inf,-inf,0.5]", "--json")
    value = json.loads(text, parse_constant=lambda name: pytest.fail(name))["outputs"]["y"]["value"]
    assert value == ["nan", "inf", "-inf", 5.0]


def test_run_json_is_one_object_though_the_graph_prints(cmd, here):
    (here / "say.mg").write_text('graph g(x: f32[]) -> (x) {\n  t = print(x) {label="x"}\n  return x\n}\n')
    status, out, err = cmd("run", "say.mg", "-i", "x=1", "--json")
    assert status == 0 and json.loads(out)["graph"] == "g" and err == "x: 1.0\n"
    assert cmd("run", "say.mg", "-i", "x=1")[1] == "x: 1.0\nx: f32[]\n1.\n"


def test_run_reads_and_writes_arrays(ok, here):
    x = np.array([[1, 2], [3, 4]], np.float32)
    (here / "pair.mg").write_text("graph g(file: f32[2,2], w: f32[2,2]) -> (file, w) {\n  return file, w\n}\n")
    np.save("x.npy", np.asfortranarray(x))
    np.savez("in.npz", w=x)
    assert ok("run", "pair.mg", "-i", "file=x.npy", "--inputs", "in.npz", "-o", "out.npz").startswith("file: f32[2,2]\n[[1. 2.]\n")
    with np.load("out.npz", allow_pickle=False) as written:
        assert all((written[name] == x).all() for name in ("file", "w"))
    ok("run", "pair.mg", "--inputs", "out.npz", "-o", "again.npz")
    zipped = "compressed.npz"
    np.savez_compressed(zipped, w=x)
    assert ok("run", "pair.mg", "--inputs", zipped, "-i", "file=1", "-i", "w=2").endswith("w: f32[2,2]\n[[2. 2.]\n [2. 2.]]\n")


@pytest.mark.parametrize("value, said", [
    ("", "'x=' is not NAME=VALUE"),
    ("hello", "--input x=hello for f32[4]: expected a number"),
    ("[1,2]", "the value has shape [2], the type says [4]"),
    ("[1,[2]]", "different depths"),
    ("1.0) : f32[4]\ny = const(2.0", "a value is written on one line"),
    ("1.0) : f32[4] #", "a value is written on one line"),
    ("1.0) : f32[4] {", "expected"),
    ("__import__('os')", "expected a number"),
    ("@" + "0" * 32, "side table"),
    ("true", "is no f32"),
])  # fmt: skip
def test_run_refuses_values_that_are_none(bad, value, said):
    assert said in bad("run", "waste.mg", "-i", f"x={value}")


def test_run_says_what_is_missing_or_unknown(bad, here):
    assert "waste needs a value for x: f32[4]; for example --input x=random" in bad("run", "waste.mg")
    assert "'y' is not an input of waste: its inputs are x" in bad("run", "waste.mg", "-i", "y=1")
    np.savez("in.npz", xx=np.zeros(4, np.float32))
    assert "in.npz: 'xx' is not an input of waste" in bad("run", "waste.mg", "--inputs", "in.npz")
    (here / "wide.mg").write_text("graph g(x: f32[1000000,1000000]) -> (y) {\n  y = neg(x)\n  return y\n}\n")
    assert "not enough memory" in bad("run", "wide.mg", "-i", "x=ones")
    (here / "int.mg").write_text("graph g(x: i8[]) -> (x) {\n  return x\n}\n")
    assert "300 does not fit into i8" in bad("run", "int.mg", "-i", "x=300")


def test_run_reports_what_numpy_refuses_at_run_time(bad, here):
    (here / "take.mg").write_text("graph g(x: f32[4], i: i32[1]) -> (y) {\n  y = take(x, i)\n  return y\n}\n")
    assert "y = take(x, i)" in bad("run", "take.mg", "-i", "x=1", "-i", "i=9")


def npy(array, **options) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


GOOD = npy(np.zeros(4, np.float32))


@pytest.mark.parametrize("data, said", [
    (npy(np.zeros(4)), "input 'x' is f32[4], but the array is f64[4]: convert it with .astype('float32')"),
    (npy(np.zeros(5, np.float32)), "input 'x' is f32[4], but the array is f32[5]"),
    (npy(np.zeros(4, ">f4")), "is not one of the IR's"),
    (npy(np.array([1, "x"], object), allow_pickle=True), "is not one of the IR's"),
    (GOOD[:-1], "it ends after 15 of 16 bytes"),
    (GOOD[:20], "damaged"),
    (GOOD[:6] + b"\x09" + GOOD[7:], "format version 9.0"),
    (GOOD.replace(b"(4,)", b"(-4,"), "damaged"),
    (GOOD.replace(b"{'descr'", b"exit(0) #"), "damaged"),
    (b"", "damaged"),
    (b"text", "damaged"),
])  # fmt: skip
def test_damaged_and_hostile_arrays_are_sentences(bad, here, data, said):
    (here / "x.npy").write_bytes(data)
    message = bad("run", "waste.mg", "-i", "x=x.npy")
    assert message.startswith("x.npy: ") and said in message
    with zipfile.ZipFile("x.npz", "w") as archive:
        archive.writestr("x.npy", data)
    message = bad("run", "waste.mg", "--inputs", "x.npz")
    assert message.startswith("x.npz: ") and said in message


def test_damaged_archives_are_sentences(bad, here):
    np.savez_compressed("good.npz", x=np.zeros(4, np.float32))
    good = (here / "good.npz").read_bytes()
    for data in (b"", b"text", good[:-8], good[:60] + b"\xff" * 20 + good[80:]):
        (here / "x.npz").write_bytes(data)
        assert bad("run", "waste.mg", "--inputs", "x.npz").startswith("x.npz: ")


# ---- draw, generate, doctor, bench, fuzz --------------------------------------------------------------------------


def test_draw(ok, here):
    assert ok("draw", "waste.mg").startswith("digraph {")
    assert ok("draw", "waste.mg") != ok("draw", "waste.mg", "--opt")
    assert ok("draw", "waste.mg", "--opt") != ok("draw", "waste.mg", "--diff")
    assert ok("draw", "waste.mg", "-o", "a.dot") == ""
    assert (here / "a.dot").read_text() == ok("draw", "waste.mg")
    assert ok("draw", "waste.mg", "--steps", "-o", "steps.html") == ""
    assert "<details" in (here / "steps.html").read_text()


def test_generate_streams_text_and_counts_on_standard_error(cmd, monkeypatch):
    from minigraph import compiler

    asked = {}

    def generate(prompt, tokens, plain, on_cut, on_optimized=None):
        asked.update(prompt=prompt, tokens=tokens, plain=plain)
        if tokens == 3:
            compiler.TELL.get()()
        if on_optimized:
            from minigraph import optimize

            on_optimized(optimize(parse(WASTE)))
        yield from ("A ", "compiler")
        if tokens == 3:
            on_cut("the answer stops here, at the limit of 3 tokens")

    monkeypatch.setitem(sys.modules, "minigraph.models.compiled", types.SimpleNamespace(generate=generate))
    assert cmd("generate", "What is", "it?") == (0, "A compiler\n", "")
    assert asked == {"prompt": "What is it?", "tokens": 128, "plain": False}
    status, out, err = cmd("generate", "--tokens", "3", "--plain", "--stats", "--", "-x")
    assert (status, out) == (0, "A compiler\n")
    assert asked == {"prompt": "-x", "tokens": 3, "plain": True}
    assert err.startswith("compiling the model's graph") and "\npass " in err and "tokens/s" in err
    assert "[the answer stops here, at the limit of 3 tokens; --tokens takes more]" in err


def test_doctor(cmd, monkeypatch):
    from minigraph import doctor

    rows = [doctor.Row("Python", "ok", "3"), doctor.Row("thing", "missing", "gone", "Install it.")]
    monkeypatch.setattr(doctor, "rows", lambda: rows)
    monkeypatch.setattr(doctor, "iter_rows", lambda: iter(rows))
    status, out, _ = cmd("doctor", "--json")
    assert status == 1
    assert json.loads(out)["rows"][1] == {"name": "thing", "status": "missing", "detail": "gone", "remedy": "Install it."}
    status, out, _ = cmd("doctor")
    assert status == 1 and "Install it." in out


def test_bench(ok, monkeypatch):
    from minigraph import bench

    rows = [{"size": 1000, "s": 0.01234567}, {"size": 100_000, "s": float("nan"), "note": "x"}]
    monkeypatch.setattr(bench, "BENCHES", {"passes": lambda: rows})
    assert json.loads(ok("bench", "passes", "--json")) == {"bench": "passes", "rows": [rows[0], {**rows[1], "s": "nan"}]}
    assert ok("bench", "passes") == "   size        s  note\n  1,000  0.01235\n100,000      nan  x\n"


def test_fuzz_gets_its_own_arguments_and_its_status_counts(cmd, monkeypatch):
    monkeypatch.setitem(sys.modules, "minigraph.fuzz", types.SimpleNamespace(main=lambda argv: len(argv)))
    assert cmd("fuzz")[0] == 0
    assert cmd("fuzz", "--graphs")[0] == 1


def test_fuzz_itself(ok):
    assert "5 graphs" in ok("fuzz", "--graphs", "5")


def test_back_ends_are_fuzzed_by_several_processes_as_by_one(ok):
    argv = ("fuzz", "--backend", "numpy", "--graphs", "120")
    assert ok(*argv, "--jobs", "2") == ok(*argv)
    assert all("--jobs" in ok("fuzz", *backend, "--help") for backend in ((), ("--backend", "c")))


def test_plan_prints_offsets_of_a_few_buffers(ok, here):
    (here / "few.csv").write_text("id,lower,upper,size\na,0,2,4\nb,1,3,8\nc,2,4,4\n")
    for planner in ("exact", "greedy_by_size"):
        rows = [line.split() for line in ok("plan", "few.csv", "--planner", planner).splitlines()]
        assert rows[0] == ["id", "lower", "upper", "size", "offset"] and [row[:4] for row in rows[1:4]] == [
            ["a", "0", "2", "4"], ["b", "1", "3", "8"], ["c", "2", "4", "4"]]
        assert {row[0]: int(row[4]) for row in rows[1:4]} == json.loads(ok("plan", "few.csv", "--planner", planner, "--json"))["offsets"]
        assert rows[5][0] == "footprint" and rows[6][0] == "12"
    (here / "many.csv").write_text("id,lower,upper,size\n" + "".join(f"b{i},{i},{i + 1},4\n" for i in range(41)))
    assert ok("plan", "many.csv").startswith("41 buffers: --json prints their offsets\n\nfootprint")


def test_bench_memory_knows_where_its_instances_are(here, monkeypatch):
    from minigraph import bench_memory

    monkeypatch.setattr(bench_memory, "real_graphs", lambda: [])
    monkeypatch.setattr(bench_memory, "planned", lambda name, *rest: {"instance": name})
    said: list[str] = []
    assert len(bench_memory.bench_memory(tell=said.append)) > 5 and not said
    assert bench_memory.bench_memory(here, tell=said.append) == [] and "instances are left out" in said[0]


@pytest.mark.parametrize("argv, variable, said", [
    (["bench", "cpu"], "", "the benchmark ended early: there is no C compiler on this machine: install gcc or clang"),
    (["fuzz", "--backend", "c", "--graphs", "3"], "", "the back end c does not work here: there is no C compiler on this machine"),
    (["fuzz", "--backend", "cuda", "--graphs", "3"], "", "the back end cuda does not work here: Running CUDA sources on the CPU takes g++"),
    (["fuzz", "--backend", "c", "--graphs", "3"], "CC", "`{}` ended with status 1\n  unset CC"),
    (["fuzz", "--backend", "cuda", "--graphs", "3"], "CXX", "`{}` ended with status 1 and made nothing. Unset CXX"),
])  # fmt: skip
def test_without_a_compiler_there_is_one_sentence(here, tmp_path, argv, variable, said):
    """In a process of its own, whose children would print tracebacks."""
    if importlib.util.find_spec("ziglang") or not sys.platform.startswith("linux"):
        pytest.skip("there is always a compiler here, or none of this")
    fake = tmp_path / "fails"
    fake.write_text("#!/bin/sh\nexit 1\n")
    fake.chmod(0o755)
    environment = {**os.environ, "PATH": "", "CC": "", "CXX": ""} | ({variable: str(fake)} if variable else {})
    done = subprocess.run([sys.executable, "-m", "minigraph", *argv], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("minigraph: error: ") and said.format(fake) in done.stderr and "Traceback" not in done.stderr


def test_a_fuzzed_graph_that_ends_in_an_error_is_one_report(monkeypatch, capfd):
    """A child's error is told with its graph, not as a traceback for each child."""
    from minigraph import check_backends, fuzz_backends

    def fails(cases, tally):
        for _ in cases:
            raise errors.RunError("no such thing")
        yield []

    monkeypatch.setitem(check_backends.BACKENDS, "numpy", fails)
    monkeypatch.setattr(fuzz_backends, "draw", lambda seed, index: check_backends.Case(parse(WASTE), {"x": np.ones(4, np.float32)}))
    assert fuzz_backends.main(["--backend", "numpy", "--graphs", "2"]) == 1
    out, err = capfd.readouterr()
    assert out.count("of seed 0 ends in an error: no such thing\ngraph waste") == 2 and "2 faults" in out and not err


def test_our_warnings_are_sentences_and_others_keep_their_line(here, cmd):
    (here / "warns.py").write_text("import warnings\nwarnings.warn('theirs')\n"
                                   "from minigraph.errors import MinigraphWarning\nwarnings.warn('ours', MinigraphWarning)\n"
                                   "def f(x: 'f32[2]'): return x\n")
    with pytest.warns(UserWarning, match="theirs") as theirs:
        assert cmd("show", "warns.py:f")[::2] == (0, "minigraph: warning: ours\n")
    assert [(os.path.basename(one.filename), one.lineno) for one in theirs] == [("warns.py", 2)]


def test_a_part_that_is_not_installed_is_a_sentence(bad, monkeypatch):
    for name in ("minigraph.models", "minigraph.models.compiled"):  # the second may be loaded by now
        monkeypatch.setitem(sys.modules, name, None)
    assert "`minigraph doctor` says what to do" in bad("generate", "hello")


# ---- interruptions, bugs, and streams that end --------------------------------------------------------------------


def test_interrupted(cmd, monkeypatch):
    def wait(args):
        raise KeyboardInterrupt

    monkeypatch.setitem(cli.COMMANDS, "doctor", (wait, "wait", ()))
    assert cmd("doctor") == (130, "", "")


def test_a_bug_is_a_sentence_and_debug_shows_where(cmd, bad, monkeypatch):
    monkeypatch.setitem(cli.COMMANDS, "doctor", (lambda args: 1 / 0, "break", ()))
    assert bad("doctor").startswith("a bug in minigraph: ZeroDivisionError: division by zero (MINIGRAPH_DEBUG=1")
    monkeypatch.setenv("MINIGRAPH_DEBUG", "1")
    assert cmd("doctor")[2].startswith("Traceback")
    assert "Traceback" in cmd("show", "absent.mg")[2]


def test_a_reader_that_stops_reading_ends_the_command_quietly(here):
    body = "".join(f"  v{i} = mul(x, x)\n" for i in range(20_000))
    (here / "long.mg").write_text(f"graph g(x: f32[4]) -> (v1) {{\n{body}  return v1\n}}\n")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    env.pop("PYTHONUNBUFFERED", None)  # without a buffer Python itself overlooks a write that was cut short
    child = subprocess.Popen([sys.executable, "-m", "minigraph", "show", "long.mg"], env=env,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout.readline().startswith(b"graph g")
    child.stdout.close()
    assert (child.stderr.read(), child.wait(60)) == (b"", 141)
    child.stderr.close()


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
def test_closed_and_full_standard_output(here):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHON": sys.executable}
    closed = subprocess.run('"$PYTHON" -m minigraph show waste.mg >&-', shell=True, env=env, stderr=subprocess.PIPE, text=True)
    assert (closed.returncode, closed.stderr) == (1, "minigraph: error: standard output is closed\n")
    if os.path.exists("/dev/full"):
        full = subprocess.run('"$PYTHON" -m minigraph show waste.mg >/dev/full', shell=True, env=env, stderr=subprocess.PIPE, text=True)
        assert (full.returncode, full.stderr) == (1, "minigraph: error: standard output: No space left on device\n")
    both = subprocess.run('"$PYTHON" -m minigraph show absent.mg 2>&-', shell=True, env=env, stdout=subprocess.PIPE)
    assert (both.returncode, both.stdout) == (1, b"")


def test_commands_make_a_pipeline(here):
    optimized = process("opt", "waste.mg", "-q")
    ran = process("run", "-", "-i", "x=1", input=optimized.stdout)
    assert ran.stdout == b"y: f32[4]\n[10. 10. 10. 10.]\n"


def test_letters_that_the_terminal_lacks_are_escaped(here):
    (here / "label.mg").write_text('graph g(x: f32[]) -> (x) {\n  t = print(x) {label="λ"}\n  return x\n}\n', encoding="utf-8")
    done = process("show", "label.mg", env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert done.returncode == 0 and b"label=" in done.stdout


def test_table_and_json_of_nothing():
    assert tables.table([]) == "\n"
    assert json.loads(tables.to_json({"a": (np.float32(1), np.int64(2), np.bool_(True), None, {3})})) == {
        "a": [1.0, 2, True, None, [3]]}
