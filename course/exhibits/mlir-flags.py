# What MLIR's canonicalizer makes of x + 0 and its kin. Each row is a function with that one
# operation, and shows what the function returns afterwards: x, a constant, or the operation, kept.
# iree-base-compiler 3.13.0 (its MLIR, arith dialect), xdsl 0.75.0 (MLIR's twin in Python);
# Python 3.11, Linux x86-64, 2026-11.
# `pip install iree-base-compiler==3.13.0 xdsl==0.75.0; python course/exhibits/mlir-flags.py`
import re

from iree.compiler import ir, passmanager
from xdsl.context import Context
from xdsl.dialects import arith, builtin, func
from xdsl.parser import Parser
from xdsl.transforms.canonicalize import CanonicalizePass

OPERATIONS = """addf 0.0; addf -0.0; addf 0.0 nsz; subf 0.0; mulf 1.0; mulf 0.0; mulf 0.0 nnan;
    mulf 0.0 nnan,nsz; muli 0; addi 0"""


def mlir(text):
    with ir.Context():
        module = ir.Module.parse(text)
        passmanager.PassManager.parse("builtin.module(canonicalize)").run(module.operation)
        return returned(str(module))


def xdsl(text):
    context = Context()
    for dialect in builtin.Builtin, func.Func, arith.Arith:
        context.load_dialect(dialect)
    module = Parser(context, text).parse_module()
    CanonicalizePass().apply(context, module)
    return returned(str(module))


def returned(text):
    name = re.search(r"return %(\w+)", text)[1]
    made = re.search(rf"%{name} = arith\.(constant )?(\S+)", text)
    return "x" if not made else f"{float(made[2]):g}" if made[1] else "kept"


print(f"{'operation':42}{'MLIR':8}xDSL")
for op, constant, *flags in map(str.split, OPERATIONS.split(";")):
    kind = "f32" if op.endswith("f") else "i32"
    row = f"{op} %x, %c" + "".join(f" fastmath<{flag}>" for flag in flags)
    text = f"""func.func @f(%x: {kind}) -> {kind} {{ %c = arith.constant {constant} : {kind}
        %r = arith.{row} : {kind} return %r : {kind} }}"""
    print(f"{row.replace('%c', constant):42}{mlir(text):8}{xdsl(text)}")
