"""Options and arguments, read the way of Unix: in any order, none abbreviated, and a slip gets a suggestion."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable

from ..errors import MinigraphError, nearest


class UsageError(MinigraphError):
    """The command line itself is wrong: exit status 2."""


def arg(*names: str, **options) -> tuple[tuple[str, ...], dict]:
    """One argument, in the words of ``argparse``."""
    return names, options


def whole(text: str) -> int:
    """A whole number from 0 on."""
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 0 on")
    return int(text)


def positive(text: str) -> int:
    """A whole number from 1 on."""
    if not whole(text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 1 on")
    return int(text)


def above_zero(text: str) -> float:
    """A finite number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0")
    return number


def given(text: str) -> str:
    """A name that is not empty: an empty one, as of a shell's variable that is not set, must not pass for no option."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty, and a name is wanted")
    return text


class Parser(argparse.ArgumentParser):
    """Raises UsageError; knows its option names, to suggest one."""

    flags: tuple[str, ...] = ()

    def add_argument(self, *names, **options):
        self.flags += tuple(name for name in names if name.startswith("-"))
        return super().add_argument(*names, **options)

    def error(self, message: str):
        raise UsageError(f"{message} (see {self.prog} --help)")


def read_options(command: str, text: str, arguments: Iterable[tuple], argv: list[str]) -> argparse.Namespace:
    """Read ``argv`` by the command's table of arguments; ``text`` says what the command does."""
    parser = Parser(prog=f"minigraph {command}", description=f"{text[0].upper()}{text[1:]}.", allow_abbrev=False)
    for names, options in arguments:
        parser.add_argument(*names, **options)
    # argparse loses track of `--` where it lets arguments and options mix
    read = parser.parse_known_args if "--" in argv else parser.parse_known_intermixed_args
    args, rest = read(argv)
    if rest:
        what = "unknown option" if rest[0].startswith("-") else "unexpected argument"
        hint = nearest(rest[0].partition("=")[0], parser.flags)
        parser.error(f"{what} '{rest[0]}'" + (f": {hint}" if hint else ""))
    return args
