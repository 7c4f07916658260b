"""The commands of `python3 -m course`: each takes the arguments after its name and returns an exit status."""

import json
import os
import shutil
import sys
import time
from pathlib import Path

from . import environment
from .environment import PYTHON, ROOT, VENV, SetupError, run
from .progress import StepFailed, step

NOTEBOOK_FOLDERS = ("notebooks", "exercises", "solutions")
NBVAL = ["--nbval", "--nbval-sanitize-with", "course/nbval.cfg", "--nbval-cell-timeout", "180"]

EXTRAS = ("cuda12", "cuda13", "nvrtc")  # parts of pyproject.toml that `setup` adds when asked to

# program -> the Debian package that has it; g++ brings cc, and also runs the generated CUDA on the CPU
SYSTEM_PROGRAMS = {"dot": "graphviz", "cc": "g++"}


def setup(args: list[str]) -> int:
    """Make or update .venv, with the EXTRAS that are named. `--pip` leaves uv out, `--system` adds system programs."""
    options, extras = {"--pip", "--system"} & set(args), sorted(set(args) & set(EXTRAS))
    unknown = sorted(set(args) - options - set(extras))
    if unknown:
        raise SetupError(f"`setup` does not know {' '.join(unknown)}; it takes --pip, --system and {', '.join(EXTRAS)}.")
    started = time.monotonic()
    use_uv = "--pip" not in options
    if "--system" in options:
        install_system_programs()
    environment.prepare(use_uv=use_uv)
    if extras:
        environment.add(extras, use_uv=use_uv)
    print(f"The environment is ready ({time.monotonic() - started:.1f} s). `python3 -m course lab` opens the course.")
    return 0


def install_system_programs() -> None:
    """Install what is missing of SYSTEM_PROGRAMS with apt-get. The course works without: this is for nicer pictures
    and for compiled kernels."""
    packages = [package for program, package in SYSTEM_PROGRAMS.items() if not shutil.which(program)]
    if not packages:
        return
    if not shutil.which("apt-get") or os.geteuid() != 0:
        print(f"  --system needs apt-get and root: install {' and '.join(packages)} with your system's own tool.")
        return
    try:
        step("reading the system's package list", ["apt-get", "update", "-q"], ROOT)
        step(f"installing {' and '.join(packages)}", ["apt-get", "install", "-qy", "--no-install-recommends", *packages], ROOT)
    except StepFailed as error:
        print(f"{error}\n  The system programs could not be installed; the course goes on without them.")


def test(args: list[str]) -> int:
    """Set up, then run pytest over the tests and the notebooks, or over the paths that `args` begin with."""
    environment.prepare()
    paths = [] if args and not args[0].startswith("-") else test_paths()
    sys.stdout.flush()
    # One serial pytest, so that one closing line counts everything and the cells of a notebook stay in order.
    return run([PYTHON, "-m", "pytest", *NBVAL, *paths, *args])


def test_paths() -> list[str]:
    """What there is to test: the tests, and the folders that hold notebooks."""
    return ["tests"] + [folder for folder in NOTEBOOK_FOLDERS if any((ROOT / folder).glob("*.ipynb"))]


def lab(args: list[str]) -> int:
    """Set up, copy the exercises to work/, then open JupyterLab at the first lesson."""
    environment.prepare()
    copy_exercises()
    turn_off_news(VENV / "share" / "jupyter" / "lab" / "settings" / "overrides.json")
    command = [PYTHON, "-m", "jupyterlab", f"--ServerApp.root_dir={ROOT}"]
    first = min(ROOT.glob("notebooks/00*.ipynb"), default=None)
    if first:
        command.append(f"--LabApp.default_url=/lab/tree/notebooks/{first.name}")
    if hasattr(os, "geteuid") and os.geteuid() == 0 and "--allow-root" not in args:
        command.append("--allow-root")  # JupyterLab refuses root without it, and a container often has nobody else
    sys.stdout.flush()
    return run([*command, *args])


def start(args: list[str]) -> int:
    """Copy the exercises to work/. A file that is there already is the learner's, and stays as it is."""
    made = copy_exercises()
    print(f"work/ has your exercises ({made} new)." if made else "work/ has your exercises; nothing was overwritten.")
    return 0


def copy_exercises() -> int:
    """How many exercises were new in work/."""
    work, made = ROOT / "work", 0
    for source in sorted((ROOT / "exercises").glob("*.ipynb")):
        target = work / source.name
        if not target.exists():
            work.mkdir(exist_ok=True)
            shutil.copyfile(source, target)
            made += 1
    return made


def grade(args: list[str]) -> int:
    """Grade with the environment's Python, which is not made for a command line that is wrong."""
    if not args:
        print("usage: python3 -m course grade FOLDER [EXERCISE ...]", file=sys.stderr)
        return 2
    if not (ROOT / args[0]).is_dir():
        print(f"{args[0]} is not a folder.", file=sys.stderr)
        return 2
    environment.prepare()
    sys.stdout.flush()
    return run([PYTHON, "-m", "course.grade", *args])


def build(args: list[str]) -> int:
    """Make the notebooks, with the environment's Python."""
    environment.prepare()
    return run([PYTHON, "-m", "course.build", *args])


def turn_off_news(settings: Path) -> None:
    """Keep JupyterLab's news and update pop-ups from covering the first lesson; a file that is there stays."""
    if not settings.exists():
        settings.parent.mkdir(parents=True, exist_ok=True)
        notification = {"fetchNews": "false", "checkForUpdates": False}
        settings.write_text(json.dumps({"@jupyterlab/apputils-extension:notification": notification}, indent=2))


def doctor(args: list[str]) -> int:
    """Say what works here; status 1 if something that the course needs does not."""
    python = PYTHON if environment.starts() else sys.executable
    # As an isolated file, not as a module: it must run where minigraph itself cannot be imported.
    return run([python, "-I", ROOT / "minigraph" / "doctor.py", *args])
