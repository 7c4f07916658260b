"""The glossary: each term once, in the chapter that teaches it, with the field's usual words in three languages."""

from typing import NamedTuple


class Term(NamedTuple):
    chapter: str
    english: str
    meaning: str
    russian: str
    chinese: str


TERMS = (
    Term("02", "tracing", "running a function once on stand-ins and recording what it does as a graph", "трассировка", "追踪"),
    Term("02", "stand-in, proxy", "an object with a dtype and a shape in place of an array; operations on it are recorded", "объект-заместитель (прокси)", "代理对象"),
    Term("02", "operator overloading", "methods of a class that say what its operators do", "перегрузка операторов", "运算符重载"),
    Term("02", "type promotion, cast", "finding the dtype that operands are computed in, and converting one to it", "повышение типа, приведение типа", "类型提升，类型转换"),
    Term("02", "loop unrolling", "writing the body of a loop once for each round", "развёртка цикла", "循环展开"),
    Term("02", "control flow", "what decides which line runs next: if, for, while", "поток управления", "控制流"),
    Term("02", "baked in", "decided while tracing and fixed in the graph", "зашито в граф", "固化在图中"),
    Term("03", "constant folding", "computing at compile time what depends on constants alone", "свёртка констант", "常量折叠"),
    Term("03", "compile time, run time", "when the graph is prepared, and when it is run on data", "время компиляции, время выполнения", "编译时，运行时"),
    Term("03", "literal", "a constant that is written in the program", "литерал", "字面量"),
    Term("03", "overflow", "a result too large for its dtype; integers wrap around", "переполнение", "溢出"),
)  # fmt: skip
