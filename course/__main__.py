"""`python3 -m course COMMAND`: the course's commands, for a Python with nothing installed."""

import sys

if sys.version_info < (3, 10):
    sys.exit(
        "The course needs Python 3.10 or newer and this is %d.%d: install a newer one and start the course "
        "with it, for example `python3.12 -m course lab`." % sys.version_info[:2]
    )

from . import commands, environment  # after the check: an older Python could not read these files

# name -> (function of the remaining arguments that returns an exit status, what the usage line says)
COMMANDS = {
    "setup": (commands.setup, "make or update .venv and fetch the model [--pip] [--system] [cuda12|cuda13] [nvrtc]"),
    "lab": (commands.lab, "set up, then open JupyterLab [its options]"),
    "start": (commands.start, "copy the exercises to work/, where you solve them; what is there stays"),
    "grade": (commands.grade, "grade a folder of submissions, each in a process of its own: FOLDER [exercises]"),
    "build": (commands.build, "make the notebooks from the chapters' sources [words of their names]"),
    "test": (commands.test, "set up, then run the tests and the notebooks [paths] [pytest's options]"),
    "doctor": (commands.doctor, "say what works here, and what to do about what does not"),
}


def usage() -> str:
    """The help text: one line for each command."""
    lines = [f"  {name:<8} {text}" for name, (_, text) in COMMANDS.items()]
    return "\n".join(["usage: python3 -m course COMMAND", "", *lines])


def main(argv: list[str]) -> int:
    """Run the command that `argv` names and return its exit status."""
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(usage())
        return 0
    if argv[0] not in COMMANDS:
        print(f"There is no command {argv[0]!r}; the commands are {', '.join(COMMANDS)}.", file=sys.stderr)
        return 2
    command, _ = COMMANDS[argv[0]]
    try:
        return command(argv[1:])
    except environment.SetupError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped: run the same command again to go on.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
