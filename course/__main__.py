"""`python3 -m course COMMAND`: the course's commands, for a Python with nothing installed."""

import sys

if sys.version_info < (3, 10):
    sys.exit(
        "The course needs Python 3.10 or newer and this is %d.%d: install a newer one and start the course "
        "with it, for example `python3.12 -m course lab`." % sys.version_info[:2]
    )

from . import commands, environment, ending  # after the check: an older Python could not read these files

# name -> (function of the remaining arguments that returns an exit status, those arguments, what it does)
COMMANDS = {
    "setup": (commands.setup, "[--pip] [--system] [cuda12|cuda13] [nvrtc]", "make or update .venv and fetch the model"),
    "lab": (commands.lab, "[JupyterLab's options]", "set up, then open JupyterLab"),
    "start": (commands.start, "", "copy the exercises to work/, where you solve them; what is there stays"),
    "grade": (commands.grade, "FOLDER [EXERCISE ...]", "grade a folder of submissions, each in a process of its own"),
    "build": (commands.build, "[WORD ...]", "make the notebooks, or those with a word in their path, from their sources"),
    "test": (commands.test, "[PATH ...] [pytest's options]", "set up, then run the tests and the notebooks"),
    "doctor": (commands.doctor, "", "say what works here, and what to do about what does not"),
}
HELP = ("-h", "--help")


def usage() -> str:
    """The help text: one line for each command."""
    lines = [f"  {name:<8} {text}{arguments and f': {arguments}'}" for name, (_, arguments, text) in COMMANDS.items()]
    return "\n".join(["usage: python3 -m course COMMAND", "", *lines])


def usage_of(name: str) -> str:
    """The usage line of one command, and what it does."""
    _, arguments, text = COMMANDS[name]
    return f"usage: python3 -m course {name} {arguments}".rstrip() + f"\n\n{text[0].upper()}{text[1:]}."


def main(argv: list[str]) -> int:
    """Run the command that `argv` names and return its exit status."""
    if not argv or argv[0] in (*HELP, "help"):
        print(usage())
        return 0
    if argv[0] not in COMMANDS:
        print(f"There is no command {argv[0]!r}; the commands are {', '.join(COMMANDS)}.", file=sys.stderr)
        return 2
    name, *rest = argv
    command, arguments, _ = COMMANDS[name]
    if any(word in HELP for word in rest):
        print(usage_of(name))
        return 0
    if rest and not arguments:
        print(f"`{name}` takes nothing after it, and {' '.join(rest)} was given.", file=sys.stderr)
        return 2
    try:
        return command(rest)
    except environment.SetupError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped: run the same command again to go on.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    ending.notice_signals()
    sys.exit(ending.quietly(lambda: main(sys.argv[1:])))
