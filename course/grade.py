"""``python3 -m course grade DIR``: grade a folder of submissions; run with the environment's Python."""

import csv
import sys
import time
from pathlib import Path

from .ending import quietly

SUFFIXES = (".ipynb", ".py")
LARGEST = 64 * 2**20  # bytes of one file


def submissions(folder: Path) -> list[tuple[str, Path]]:
    """(who, file): each notebook or Python file in the folder, and each in a folder of its own for one person.

    A link could hand in somebody else's file, so links do not count.
    """
    found = []
    for path in sorted(path for path in folder.iterdir() if not path.is_symlink()):
        if path.is_dir() and not path.name.startswith("."):
            found += [(path.name, file) for file in sorted(path.rglob("*")) if is_submission(file)
                      and not any(part.startswith(".") for part in file.relative_to(folder).parts)]
        elif is_submission(path):
            found.append((path.stem, path))
    return found


def is_submission(path: Path) -> bool:
    return path.suffix in SUFFIXES and path.is_file() and not path.is_symlink()


def main(args: list[str]) -> int:
    from minigraph.teach.exercises import EXERCISES
    from minigraph.teach.grading import containment, grade_file, one_line

    wanted = [arg for arg in args[1:] if arg in EXERCISES]
    unknown = [arg for arg in args[1:] if arg not in EXERCISES]
    folder = Path(args[0]) if args else None
    if folder is None or not folder.is_dir() or unknown:
        print("usage: python3 -m course grade FOLDER [EXERCISE ...]" if folder is None else
              f"{folder} is not a folder." if not folder.is_dir() else
              f"There is no exercise '{unknown[0]}'; there are {', '.join(EXERCISES)}.", file=sys.stderr)
        return 2
    found = submissions(folder)
    if not found:
        print(f"{folder} holds no {' or '.join(SUFFIXES)} file.", file=sys.stderr)
        return 1
    # read all of them first: no submission can then touch another one, whatever it does
    contents = [content_of(path) for _, path in found]
    print(f"{len(found)} files; {containment()}")
    grades = []
    for (who, path), content in zip(found, contents):
        started = time.monotonic()
        grade = grade_file(path.suffix, content or b"", one_line(who), wanted)
        if content is None:
            grade.problems.append(f"the file cannot be read, or has more than {LARGEST:,} bytes")
        grades.append((one_line(path.name), grade))
        print(f"  {grade.submission:<24} {grades[-1][0]:<28} {grade.right} of {len(grade.outcomes)} right  ({time.monotonic() - started:.0f} s)", flush=True)
    write_csv(folder / "grades.csv", grades)
    write_report(folder / "grades.txt", grades)
    print(f"Written: {folder / 'grades.csv'} and {folder / 'grades.txt'}.")
    return 0


def content_of(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if path.stat().st_size <= LARGEST else None
    except OSError:
        return None


def write_csv(path: Path, grades) -> None:
    names = list(dict.fromkeys(name for _, grade in grades for name in grade.outcomes))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["submission", "file", "right", *names, "problems"])
        for file_name, grade in grades:
            row = [grade.submission, file_name, grade.right, *(grade.outcomes.get(name, "") for name in names), "; ".join(grade.problems)]
            # a name that begins like a formula must not become one in a spreadsheet
            writer.writerow([f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@")) else cell for cell in row])


def write_report(path: Path, grades) -> None:
    lines = []
    for file_name, grade in grades:
        lines.append(f"{grade.submission} ({file_name}): {grade.right} of {len(grade.outcomes)} right")
        lines += [f"  {name}: {outcome}. {grade.sentences.get(name, '')}".rstrip() for name, outcome in grade.outcomes.items()]
        lines += [f"  note: {problem}" for problem in grade.problems]
        lines.append("")
    path.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(quietly(lambda: main(sys.argv[1:])))
