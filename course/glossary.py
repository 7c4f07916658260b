"""The glossary: each term once, in the chapter that teaches it, with the field's usual words in three languages."""

from typing import NamedTuple


class Term(NamedTuple):
    chapter: str
    english: str
    meaning: str
    russian: str
    chinese: str


TERMS = (
    Term("03", "constant folding", "computing at compile time what depends on constants alone", "свёртка констант", "常量折叠"),
    Term("03", "compile time, run time", "when the graph is prepared, and when it is run on data", "время компиляции, время выполнения", "编译时，运行时"),
    Term("03", "literal", "a constant that is written in the program", "литерал", "字面量"),
    Term("03", "overflow", "a result too large for its dtype; integers wrap around", "переполнение", "溢出"),
)  # fmt: skip
