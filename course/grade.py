"""``python3 -m course grade DIR``: grade a folder of submissions; run with the environment's Python."""

import csv
import sys
import time
from pathlib import Path

SUFFIXES = (".ipynb", ".py")


def submissions(folder: Path) -> list[tuple[str, Path]]:
    """(who, file): each notebook or Python file in the folder, and each in a folder of its own for one person."""
    found = []
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.name.startswith("."):
            found += [(path.name, file) for file in sorted(path.rglob("*")) if file.suffix in SUFFIXES and file.is_file()
                      and not any(part.startswith(".") for part in file.relative_to(folder).parts)]
        elif path.suffix in SUFFIXES and path.is_file():
            found.append((path.stem, path))
    return found


def main(args: list[str]) -> int:
    from minigraph.teach.exercises import EXERCISES
    from minigraph.teach.grading import containment, grade_file

    wanted = [arg for arg in args[1:] if arg in EXERCISES]
    unknown = [arg for arg in args[1:] if arg not in EXERCISES]
    folder = Path(args[0]) if args else None
    if folder is None or not folder.is_dir() or unknown:
        print(f"There is no exercise '{unknown[0]}'." if unknown else "usage: python3 -m course grade FOLDER [EXERCISE ...]",
              file=sys.stderr)
        return 2
    found = submissions(folder)
    if not found:
        print(f"{folder} holds no {' or '.join(SUFFIXES)} file.", file=sys.stderr)
        return 1
    # read all of them first: no submission can then touch another one, whatever it does
    contents = [path.read_bytes() for _, path in found]
    print(f"{len(found)} files; {containment()}")
    grades = []
    for (who, path), content in zip(found, contents):
        started = time.monotonic()
        grade = grade_file(path.suffix, content, who, wanted)
        grades.append((path, grade))
        print(f"  {who:<24} {path.name:<28} {grade.right} of {len(grade.outcomes)} right  ({time.monotonic() - started:.0f} s)", flush=True)
    write_csv(folder / "grades.csv", grades)
    write_report(folder / "grades.txt", grades)
    print(f"Written: {folder / 'grades.csv'} and {folder / 'grades.txt'}.")
    return 0


def write_csv(path: Path, grades) -> None:
    names = list(dict.fromkeys(name for _, grade in grades for name in grade.outcomes))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["submission", "file", "right", *names, "problems"])
        for source, grade in grades:
            row = [grade.submission, source.name, grade.right, *(grade.outcomes.get(name, "") for name in names), "; ".join(grade.problems)]
            # a name that begins like a formula must not become one in a spreadsheet
            writer.writerow([f"'{cell}" if str(cell)[:1] in "=+-@" and not isinstance(cell, int) else cell for cell in row])


def write_report(path: Path, grades) -> None:
    lines = []
    for source, grade in grades:
        lines.append(f"{grade.submission} ({source.name}): {grade.right} of {len(grade.outcomes)} right")
        lines += [f"  {name}: {outcome}. {grade.sentences.get(name, '')}".rstrip() for name, outcome in grade.outcomes.items()]
        lines += [f"  note: {problem}" for problem in grade.problems]
        lines.append("")
    path.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
