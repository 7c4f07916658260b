"""The recorded texts of real compilers: their form, and, where the same versions are installed, that they still hold."""

import ast
import importlib.metadata
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = sorted((ROOT / "course" / "exhibits").glob("*.py"))
DISTRIBUTIONS = {"iree": "iree-base-compiler", "tvm": "apache-tvm"}
THEIR_OWN = {"numpy"}  # comes with the others, and no exhibit is about it alone
LINES, COLUMNS, CODE_LINES = 25, 100, 40


def head(text):
    """The comment lines that a text starts with."""
    lines = text.splitlines()
    return lines[: next((number for number, line in enumerate(lines) if not line.startswith("#")), len(lines))]


def parts(script):
    """(first lines, body) of the recorded text of a script."""
    text = script.with_suffix(".txt").read_text(encoding="utf-8")
    first = head(text)
    return first, text.splitlines()[len(first) + 1 :]


def command(script):
    """The command between backticks in a script's first lines."""
    return re.search(r"`(pip install .*?)`", " ".join(line[2:] for line in head(script.read_text(encoding="utf-8"))))[1]


def pins(script):
    """The packages that a script's command installs."""
    return [Requirement(word) for word in command(script).split(";")[0].split()[2:]]


exhibits = pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)


def test_every_recorded_text_has_its_script():
    assert SCRIPTS
    assert {path.stem for path in SCRIPTS} == {path.stem for path in SCRIPTS[0].parent.glob("*.txt")}


@exhibits
def test_first_lines_say_what_with_which_versions_and_how(script):
    first, _ = parts(script)
    assert first == head(script.read_text(encoding="utf-8")), "the script's first lines are others: record it again"
    assert all(line.startswith("# ") and len(line) <= COLUMNS for line in first)
    assert not [line for line in first if re.search(r"\S\*|\*\S", line)], "a * would end the italics of the caption"
    said = " ".join(line[2:] for line in first).split("`pip")[0]
    assert re.search(r"\b20\d\d-\d\d\.", said) and "Linux x86-64" in said
    for pin in pins(script):
        assert re.search(rf"\b{re.escape(pin.name)}\b", said), f"{pin.name} is installed and not named"
        assert f" {str(pin.specifier).removeprefix('==')}" in said, f"the version of {pin.name} is another"
    assert command(script).split(";")[1].split() == ["python", f"course/exhibits/{script.name}"]


@exhibits
def test_recorded_text_is_short_and_names_no_machine(script):
    _, body = parts(script)
    assert body and body[0] and body[-1], "no text, or an empty line at an end"
    assert len(body) <= LINES and max(map(len, body)) <= COLUMNS
    text = "\n".join(body)
    assert not re.search(r"^#|```|[ \t]$", text, re.MULTILINE), "a comment, a fence or a space at the end of a line"
    assert not re.search(r"(?<![\w.:-])/\w+/\w|[A-Z]:\\|0x[0-9a-f]{6}", text), "a path or an address"


@exhibits
def test_script_is_short_and_its_command_installs_what_it_imports(script):
    text = script.read_text(encoding="utf-8")
    code = [line for line in text.splitlines() if line and not line.startswith(("#", "import ", "from "))]
    assert len(code) <= CODE_LINES and max(map(len, text.splitlines())) <= 120
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module.split(".")[0])
    needed = {DISTRIBUTIONS.get(name, name) for name in names - set(sys.stdlib_module_names)}
    assert needed - THEIR_OWN <= {pin.name for pin in pins(script)}


@exhibits
def test_script_still_prints_the_recorded_text(script, accept):
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        pytest.skip("recorded on Linux x86-64")
    for pin in pins(script):
        try:
            version = importlib.metadata.version(pin.name)
        except importlib.metadata.PackageNotFoundError:
            pytest.skip(f"{pin.name} is not installed")
        if not pin.specifier.contains(Version(version).public, prereleases=True):
            pytest.skip(f"recorded with {pin}, and {version} is installed")
    if "torch.compile(" in script.read_text(encoding="utf-8") and not shutil.which("g++"):
        pytest.skip("torch.compile needs a C++ compiler")
    done = subprocess.run([sys.executable, script], cwd=ROOT, capture_output=True, text=True, encoding="utf-8", timeout=600)
    assert done.returncode == 0, done.stderr
    if accept:
        first = "\n".join(head(script.read_text(encoding="utf-8")))
        script.with_suffix(".txt").write_text(f"{first}\n\n{done.stdout.rstrip()}\n", encoding="utf-8")
    else:
        assert done.stdout.splitlines() == parts(script)[1]
