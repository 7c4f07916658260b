"""The glossary: each term once, in the chapter that teaches it, with the field's usual words in three languages."""

from typing import NamedTuple


class Term(NamedTuple):
    chapter: str
    english: str
    meaning: str
    russian: str
    chinese: str


TERMS = (
    Term("00", "graph compiler", "a program that turns a model's graph into something a device runs fast", "графовый компилятор", "图编译器"),
    Term("00", "computation graph", "operations as nodes, tensors as edges, no cycles (a directed acyclic graph, DAG)", "граф вычислений", "计算图"),
    Term("00", "tensor", "an array of numbers with a dtype and a shape", "тензор", "张量"),
    Term("00", "token", "a word or a piece of one: what a language model reads and writes", "токен", "词元"),
    Term("00", "launch, kernel", "one start of a piece of ready-made code on the device; that code", "запуск, ядро (kernel)", "启动，内核"),
    Term("00", "pass", "one idea applied to a whole graph", "проход", "遍（pass）"),
    Term("01", "intermediate representation (IR)", "a program as data, between the framework and the device", "промежуточное представление", "中间表示"),
    Term("01", "node, operand", "one operation with the value that it defines; a value that it reads", "узел, операнд", "节点，操作数"),
    Term("01", "topological order", "an order in which everything stands after what it reads", "топологический порядок", "拓扑序"),
    Term("01", "invariant", "a rule that holds before and after every pass", "инвариант", "不变量"),
    Term("01", "verifier", "the function that checks the invariants", "верификатор", "验证器"),
    Term("01", "static single assignment (SSA)", "each name is defined once, by one node", "статическое однократное присваивание", "静态单赋值"),
    Term("01", "side effect", "what a node does besides giving a value, like printing", "побочный эффект", "副作用"),
    Term("01", "effect token", "a value without data that keeps effects in order", "токен эффекта", "副作用令牌"),
    Term("01", "use-def graph", "a graph in which each value also knows its users", "граф использований и определений", "使用-定义图"),
    Term("01", "provenance, origin", "where in the source a value comes from", "происхождение", "来源"),
    Term("01", "interpreter", "a program that runs a graph node by node", "интерпретатор", "解释器"),
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
    Term("04", "algebraic simplification", "replacing an operation by something lighter that gives the same bits", "алгебраическое упрощение", "代数化简"),
    Term("04", "identity (neutral element)", "a constant that changes nothing: 1 for a product", "нейтральный элемент", "单位元（幺元）"),
    Term("04", "signed zero", "0.0 and -0.0: equal by ==, and different numbers", "ноль со знаком", "带符号零"),
    Term("04", "NaN (not a number)", "the float that stands for no answer; not equal to itself", "не число (NaN)", "非数（NaN）"),
    Term("04", "rewrite rule, pattern", "a left side to look for and a right side to put there", "правило переписывания, образец", "重写规则，模式"),
    Term("04", "bit-exact", "the same in every bit, on every input", "с точностью до бита", "逐位一致"),
    Term("04", "fast-math flags", "permissions to be wrong in a named way: nnan, ninf, nsz …", "флаги fast-math", "快速数学（fast-math）标志"),
    Term("04", "counterexample", "one input on which a claim is wrong", "контрпример", "反例"),
    Term("04", "termination", "that something comes to an end", "завершаемость", "终止性"),
    Term("05", "dead code", "what no output and no effect needs, and what only dead nodes read", "мёртвый код", "死代码"),
    Term("05", "dead-code elimination (DCE)", "deleting dead code: mark what is needed, walk back, delete the rest", "удаление мёртвого кода", "死代码消除"),
    Term("05", "liveness", "whether a value is still needed", "живость (анализ живых переменных)", "活跃性"),
    Term("05", "root", "a value that is needed by itself: an output's, or an effect", "корень", "根"),
    Term("05", "signature", "a graph's inputs and the public names of its outputs: what its callers rely on", "сигнатура", "签名"),
    Term("06", "common-subexpression elimination (CSE)", "computing once what the program computes several times", "устранение общих подвыражений", "公共子表达式消除"),
    Term("06", "value numbering", "giving equal values equal numbers, by looking each node up by its key", "нумерация значений", "值编号"),
    Term("06", "commutative", "the order of the operands changes no bit", "коммутативный", "可交换的"),
    Term("06", "pass order, phase ordering", "which pass runs before which", "порядок проходов", "遍的执行顺序（phase ordering）"),
    Term("06", "fixpoint", "a state that another round does not change", "неподвижная точка", "不动点"),
    Term("06", "hash-consing", "making equal nodes only once, by a table in the constructor", "хеш-консинг", "哈希构造（hash consing）"),
    Term("06", "e-graph", "a structure that keeps all equal forms of a value side by side", "e-граф", "e-图（等价图）"),
    Term("06b", "multigraph", "a graph that may have several edges between the same two nodes", "мультиграф", "多重图"),
    Term("06b", "ancestor, descendant", "a node from which edges lead here; one to which they lead from here", "предок, потомок", "祖先，后代"),
    Term("06b", "reference", "an operand held as the node itself, not by its name", "ссылка", "引用"),
    Term("06b", "exhaustive test", "trying every possible input", "исчерпывающая проверка", "穷举测试"),
)  # fmt: skip
