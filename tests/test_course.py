"""The gates of the course: every exercise, every chapter and every built notebook holds to its promises."""

import ast
import json
import re
from pathlib import Path

import pytest

from course import gates
from course.build import make_notebook, notebooks
from course.sources import chapters, read_cells
from minigraph.teach import api, prelude, state
from minigraph.teach.examples import mlp_graph
from minigraph.teach.exercise import BEGIN, END, solution_lines, solved, source_of, stub
from minigraph.teach.exercises import BAKED, BENCHMARKS, BREAKS, CHAPTERS, EXERCISES, REFUTATIONS
from minigraph.teach.invariants import RULES, broken_rules
from minigraph.teach.wire import decode, encode
from minigraph.text import parse
from minigraph.verify import verify

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = [pytest.param(folder, id=folder.name) for folder in chapters()]
ALL = [pytest.param(one, id=name) for name, one in EXERCISES.items()]
WRONG = [pytest.param(one, mistake, id=f"{name}-{mistake.function.__name__}")
         for name, one in EXERCISES.items() for mistake in one.mistakes]
RIGHT = [pytest.param(one, function, id=f"{name}-{function.__name__}")
         for name, one in EXERCISES.items() for function in one.alternatives]
REFUTED = [pytest.param(one, id=name) for name, one in REFUTATIONS.items()]
TRACED = [pytest.param(one, id=name) for name, one in BAKED.items()]
BROKEN = [pytest.param(one, id=name) for name, one in BREAKS.items()]
MISRANKED = [pytest.param(one, id=name) for name, one in BENCHMARKS.items()]


@pytest.fixture(autouse=True)
def fresh_work(tmp_path, monkeypatch):
    monkeypatch.setenv("MINIGRAPH_WORK", str(tmp_path))


def in_a_notebook(source: str, name: str):
    """The function that a learner's cell defines: only the prelude's names are there."""
    namespace = {key: getattr(prelude, key) for key in prelude.__all__} | {"__name__": "__main__"}
    exec(compile(source, "cell", "exec"), namespace)
    return namespace[name]


# ---- exercises --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exercise", ALL)
def test_a_stub_is_not_attempted(exercise):
    function = in_a_notebook(stub(source_of(exercise.solution)), exercise.name)
    report = api.check(function)
    assert report.outcome == "not attempted"
    assert exercise.name not in state.load()["checks"]


@pytest.mark.parametrize("exercise", ALL)
def test_a_solution_is_right_with_the_names_that_a_learner_has(exercise):
    function = in_a_notebook(solved(source_of(exercise.solution)), exercise.name)
    verdict = exercise.judge(exercise.adapt(function))
    assert verdict.failure is None, verdict.failure


@pytest.mark.parametrize("exercise", ALL)
def test_an_exercise_can_be_graded_in_another_process(exercise):
    """What the judge gives and gets travels as JSON: see minigraph.teach.grading."""
    function = exercise.adapt(exercise.solution)

    def remote(*arguments):
        return decode(encode(function(*[decode(encode(one)) for one in arguments])))

    failure = exercise.judge(remote).failure
    assert failure is None, failure


@pytest.mark.parametrize("exercise, function", RIGHT)
def test_other_right_solutions_are_right(exercise, function):
    verdict = exercise.judge(exercise.adapt(function))
    assert verdict.failure is None, verdict.failure


@pytest.mark.parametrize("exercise, mistake", WRONG)
def test_a_wrong_solution_gets_the_right_sentence(exercise, mistake):
    failure = exercise.judge(exercise.adapt(mistake.function)).failure
    assert failure is not None, "the checker accepts it"
    assert failure.kind == mistake.kind, failure
    assert failure.graph is None or len(failure.graph) <= 5, "the counterexample is not small"
    if mistake.kind != "too-long" and (failure.case or failure.graph):  # a long case is not shown, nor tried again
        known = api.known_mistake(exercise, failure, mistake.function)
        assert known is not None and known.note == mistake.note, known


@pytest.mark.parametrize("exercise", ALL)
def test_an_exercise_is_whole(exercise):
    assert exercise.chapter in CHAPTERS
    assert len(exercise.mistakes) >= 5 and len({mistake.function for mistake in exercise.mistakes}) >= 5
    assert len(exercise.alternatives) >= 2
    assert len(exercise.hints) == 3 and len(set(exercise.hints)) == 3 and all(len(hint) > 30 for hint in exercise.hints)
    source = source_of(exercise.solution)
    assert source.count(BEGIN) == source.count(END) >= 1
    assert exercise.solution.__doc__ and exercise.title
    assert 3 <= exercise.lines <= 25, exercise.lines


def test_a_function_that_does_all_the_work_is_not_a_solution():
    report = api.check(in_a_notebook("def interpret(graph, inputs):\n    return run(graph, inputs)\n", "interpret"))
    assert report.outcome == "wrong" and "run does all the work" in report.headline


@pytest.mark.parametrize("exercise", ALL)
def test_no_line_of_a_solution_is_in_its_stub(exercise):
    source = source_of(exercise.solution)
    shown = {line.strip() for line in stub(source).splitlines()}
    assert not shown & set(solution_lines(source))


@pytest.mark.parametrize("one", REFUTED)
def test_a_refutation_can_be_found_and_is_not_given_away(one):
    verify(one.start)
    verify(one.answer)
    assert len(one.answer) <= 6
    assert one.judge(one.function, one.start)[0] is None
    assert one.judge(one.function, one.answer)[0] is not None
    assert one.function.__doc__ and one.hint and one.lesson
    assert api.refute(one.function, one.start).outcome == "not attempted"
    assert api.refute(one.function, one.answer).outcome == "right"


@pytest.mark.parametrize("one", TRACED)
def test_what_is_baked_in_can_be_found_and_is_not_given_away(one):
    verify(one.graph)
    assert one.function.__doc__ and one.hint and one.lesson
    assert api.refute_trace(one.function, **one.example).outcome == "not attempted"
    assert api.refute_trace(one.function, **one.answer).outcome == "right"
    assert api.refute_trace(one.function).outcome == "wrong"


@pytest.mark.parametrize("one", MISRANKED)
def test_a_benchmark_can_be_refuted_and_is_not_given_away(one):
    for text in (*one.start, *one.answer):
        verify(parse(text))
        assert len(parse(text)) <= 6
    assert one.function.__doc__ and one.hint and one.lesson
    first, second = one.answer
    assert api.refute_benchmark(one.function, *one.start).outcome == "not attempted"
    assert api.refute_benchmark(one.function, first, second).outcome == "right"
    assert api.refute_benchmark(one.function, parse(second), parse(first)).outcome == "right", "either may be the one that it praises"
    assert api.refute_benchmark(one.function, *one.start[::-1]).outcome == "wrong"
    assert api.refute_benchmark(one.function, first, first).outcome == "wrong"
    too_large = mlp_graph(layers=2, width=4)
    assert "6 are enough" in api.refute_benchmark(one.function, first, too_large).headline
    with pytest.raises(api.LearnerError, match="none of the wrong benchmarks"):
        api.refute_benchmark(one.truth, first, second)
    with pytest.raises(api.LearnerError, match="two graphs"):
        api.refute_benchmark(one.function, first, 3)


def test_a_function_that_cannot_be_refuted_gets_the_names_of_those_that_can():
    def fold(graph):
        return graph

    for call, known in ((lambda: api.refute(fold, None), api.REFUTATIONS), (lambda: api.refute_trace(fold), api.BAKED),
                        (lambda: api.refute_benchmark(fold, "", ""), api.BENCHMARKS)):
        with pytest.raises(api.LearnerError) as caught:
            call()
        assert f"They are {', '.join(known)}." in str(caught.value)


def broken(one):
    """The graph that the solution's notebook gives."""
    names = {key: getattr(prelude, key) for key in prelude.__all__} | {node.name: node for node in one.start.nodes}
    return eval(one.answer, names | {"good": one.start})


@pytest.mark.parametrize("one", BROKEN)
def test_a_rule_can_be_broken_and_no_other_with_it(one):
    assert one.rule in RULES and one.hint and one.lesson
    assert not broken_rules(one.start)
    assert api.break_rule(one.rule, one.start).outcome == "not attempted"
    for other in BREAKS.values():
        assert api.break_rule(one.rule, broken(other)).outcome == ("right" if other is one else "wrong")


def test_solving_everything_is_100_percent():
    for exercise in EXERCISES.values():
        assert api.check(in_a_notebook(solved(source_of(exercise.solution)), exercise.name)).outcome == "right"
    for one in REFUTATIONS.values():
        api.refute(one.function, one.answer)
    for one in BAKED.values():
        api.refute_trace(one.function, **one.answer)
    for one in BREAKS.values():
        api.break_rule(one.rule, broken(one))
    for one in BENCHMARKS.values():
        api.refute_benchmark(one.function, *one.answer)
    assert "100 %" in str(api.progress())


# ---- chapters ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_chapter_keeps_its_budgets(folder):
    numbers = gates.measure(folder)
    assert numbers["words"] <= gates.WORDS, numbers
    assert numbers["code cells"] <= gates.CODE_CELLS, numbers
    assert numbers["exercises"] <= gates.EXERCISES and numbers["stretch"] <= 1, numbers


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_chapter_uses_nothing_that_comes_later(folder):
    assert gates.too_early(folder) == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_lesson_has_its_rhythm(folder):
    assert gates.missing_parts(gates.lesson_cells(folder)) == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_links_lead_somewhere(folder):
    for name in ("lesson.py", "exercise.py"):
        if (folder / name).is_file():
            text = "\n".join(cell.source for cell in read_cells(folder / name) if cell.kind == "markdown")
            assert gates.broken_links(text, ROOT / "notebooks") == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_exercise_of_a_chapter_is_in_its_notebook(folder):
    if not (folder / "exercise.py").is_file():
        return
    code = "\n".join(cell.source for cell in read_cells(folder / "exercise.py") if cell.kind == "code")
    for name, one in EXERCISES.items():
        if one.chapter == gates.chapter_of(folder):
            assert f"def {name}(" in code and f"check({name})" in code
    for name, one in REFUTATIONS.items():
        if one.chapter == gates.chapter_of(folder):
            assert f"refute({name}, graph)" in code
    for name, one in BAKED.items():
        if one.chapter == gates.chapter_of(folder):
            assert f"refute_trace({name}, " in code
    for name, one in BREAKS.items():
        if one.chapter == gates.chapter_of(folder):
            assert f'break_rule("{name}", ' in code
    for name, one in BENCHMARKS.items():
        if one.chapter == gates.chapter_of(folder):
            assert f"refute_benchmark({name}, first, second)" in code


# ---- built notebooks --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", list(notebooks()))
def test_a_notebook_is_what_its_source_says(path):
    committed = json.loads((ROOT / path).read_text(encoding="utf-8"))
    wanted = make_notebook(path, notebooks()[path]())
    assert [bare(cell) for cell in committed["cells"]] == [bare(cell) for cell in wanted["cells"]], (
        f"{path} is not built from its source: run python3 -m course build")
    assert committed["metadata"] == wanted["metadata"]


def bare(cell: dict) -> dict:
    source = cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])
    return {"id": cell["id"], "type": cell["cell_type"], "source": source, "metadata": cell["metadata"]}


@pytest.mark.parametrize("path", list(notebooks()))
def test_outputs_are_clean(path):
    """No error is stored, every picture says what it shows, and counts run from one."""
    cells = json.loads((ROOT / path).read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    for cell in code:
        for output in cell["outputs"]:
            assert output["output_type"] != "error"
            assert output.get("name") != "stderr", output
            data = output.get("data", {})
            assert "image/png" not in data and "image/svg+xml" not in data, "a picture without an alt text"
            for image in re.findall(r"<img [^>]*>", "".join(data.get("text/html", ""))):
                alt = re.search(r'alt="([^"]*)"', image)
                assert alt and len(alt[1]) > 20, image[:200]
            assert " 0x" not in "".join(data.get("text/plain", "")), "an address is stored"


@pytest.mark.parametrize("path", list(notebooks()))
def test_code_fits_on_a_laptop(path):
    assert gates.long_lines(notebooks()[path]()) == []


@pytest.mark.parametrize("path", list(notebooks()))
def test_no_number_at_the_start_of_a_line_makes_a_list_of_a_sentence(path):
    for cell in notebooks()[path]():
        if cell.kind == "markdown":
            lines = cell.source.split("\n")
            for above, line in zip(lines, lines[1:]):
                assert not re.match(r"(1[.)]|[-+*]) ", line) or not above or re.match(r"\s*(\d+[.)]|[-+*>]) |  ", above), f"{above}\n{line}"


@pytest.mark.parametrize("path", list(notebooks()))
def test_code_cells_are_python(path):
    for cell in notebooks()[path]():
        if cell.kind == "code":
            ast.parse(cell.source)
