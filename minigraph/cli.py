"""The command line: ``minigraph show|opt|run|why|draw|launches|code|plan|generate|doctor|bench|fuzz``.

Exit status: 0 done, 1 the input is wrong (one sentence on standard error), 2 the command line is wrong,
130 interrupted, 141 nobody reads the output any more. ``MINIGRAPH_DEBUG=1`` adds tracebacks.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable

import numpy as np

from . import __version__
from .command import tables
from .command.arrays import read_inputs, write_npz
from .errors import MinigraphError, MinigraphWarning, nearest
from .files import save
from .ir import Graph
from .command.options import UsageError, above_zero, arg, given, positive, read_options, whole
from .pipeline import DEFAULT, Optimized, optimize
from .backends import compile
from .run_numpy import stats
from .command.targets import load_target
from .text import print_diff, print_graph
from .types import type_of

LINES = 200  # array elements that `run` prints before it leaves the middle out
BUFFERS = 40  # that `plan` prints with their offsets


def out(text: str) -> None:
    sys.stdout.write(text)


def complain(text: str) -> None:
    if sys.stderr is not None:  # closed: print() would turn to standard output
        print(text, file=sys.stderr)


# ---- the commands: each takes its arguments and returns an exit status, None for 0 ------------------------------


def load(args) -> Graph:
    return load_target(args.target, args.types + args.spec)


def optimized(args) -> Optimized:
    passes = DEFAULT if args.passes is None else [name.strip() for name in args.passes.split(",") if name.strip()]
    return optimize(load(args), fast=args.fast, passes=passes)


def load_or_optimize(args) -> Graph:
    """For commands that optimize where an option asks for it."""
    return optimized(args).graph if args.opt or args.fast or args.passes is not None else load(args)


def check_suffix(path: str | None, *suffixes: str) -> None:
    """Before any work is done: can a file of this name be written?"""
    if path and not path.endswith(suffixes):
        raise UsageError(f"'{path}' cannot be written: its name must end in {' or '.join(suffixes)}")


def show(args) -> None:
    graph = load(args)
    if args.json:
        return out(tables.to_json({**tables.graph_rows(graph), "stats": stats(graph)}))
    out(print_graph(graph, types=not args.no_types, origins=args.origins))
    if args.stats:  # as comments: the output is still a graph that can be read
        rows = [{"count": name, "": value} for name, value in tables.plain(stats(graph)).items()]
        out("".join(f"# {line}\n" for line in tables.table(rows).splitlines()[1:]))


def opt(args) -> None:
    check_suffix(args.output, ".mg")
    done = optimized(args)
    if args.output:
        save(done.graph, args.output)
    if args.json:
        return out(tables.to_json(tables.optimized_rows(done)))
    if args.quiet:
        return out("" if args.output else print_graph(done.graph))
    if not args.report:
        out(print_diff(done.traced, done.graph) + "\n")
    out(tables.report(done) + "\n" + tables.table(tables.pass_rows(done)))


def run(args) -> None:
    check_suffix(args.output, ".npz")
    graph = load_or_optimize(args)
    executable = compile(graph, backend=args.backend)
    arrays = read_inputs(graph, args.input, args.inputs, args.seed)
    with contextlib.redirect_stdout(sys.stderr) if args.json else contextlib.nullcontext():  # a graph may print
        outputs = executable(arrays, seed=args.seed, **({"to_host": True} if args.backend == "cupy" else {}))
    if args.output:
        write_npz(args.output, outputs)
    if args.json:
        values = {name: {"type": str(type_of(array)), "value": array} for name, array in outputs.items()}
        return out(tables.to_json({"graph": graph.name, "outputs": values}))
    for name, array in outputs.items():
        out(f"{name}: {type_of(array)}\n{np.array2string(array, threshold=LINES, max_line_width=100)}\n")


def why(args) -> None:
    if "=" in args.name:
        name = next((text for text in args.types if "=" not in text), "NAME")
        raise UsageError(f"'{args.name}' is not the name of a value, which comes before the types:"
                         f" minigraph why {args.target} {name} '{args.name}'")
    out(optimized(args).why(args.name) + "\n")


def draw(args) -> None:
    if args.steps and not args.output:
        raise UsageError("--steps makes a page: give it a name, like -o steps.html")
    check_suffix(args.output, *(() if args.steps else (".svg", ".png", ".dot")), ".html")
    from .drawing import draw, draw_diff, steps

    if args.steps:
        picture = steps(optimized(args).history)
    elif args.diff:
        done = optimized(args)
        picture = draw_diff(done.traced, done.graph)
    else:
        picture = draw(load_or_optimize(args))
    if args.output:
        picture.save(args.output)
    else:
        out(picture.dot)


def launches(args) -> None:
    from .backends import matmul_rows
    from .fusion import explain, fuse
    from .plan import make_plan

    graph = load_or_optimize(args)
    partition = fuse(graph, rows=matmul_rows(args.backend), enabled=not args.unfused)
    if args.explain is not None:
        return out(explain(partition, args.explain) + "\n")
    plan = make_plan(partition)
    rows = [{"launch": one.name, "kind": one.kind, "operations": len(one.nodes), "read": one.bytes_read,
             "written": one.bytes_written, "flops": one.flops} for one in plan.launches]
    total = {"launches": len(rows), "bytes": plan.bytes_moved, "arena": plan.arena_bytes, "bound": plan.placement.lower_bound}
    if args.json:
        return out(tables.to_json({"graph": graph.name, "launches": rows, "total": total}))
    out(tables.table(rows) + "\n" + tables.table([total]))


def code(args) -> None:
    from .codegen.program import c_program, cuda_program
    from .fusion import fuse
    from .plan import make_plan

    if args.threads and args.dialect != "c":
        raise UsageError("--threads is of C: leave it out, or take --dialect c")
    plan = make_plan(fuse(load_or_optimize(args), enabled=not args.unfused))
    out((cuda_program(plan) if args.dialect == "cuda" else c_program(plan, args.threads or 1)).source)


def plan(args) -> None:
    check_suffix(args.draw, ".svg", ".png", ".html")
    from .command.instances import read_instance
    from .planners import PLANNERS, plan_memory

    if args.planner not in PLANNERS:
        raise UsageError(f"there is no planner '{args.planner}': " + (nearest(args.planner, PLANNERS) or f"there are {', '.join(PLANNERS)}"))
    unused = [f"--{name}" for name in ("seconds", "seed", "capacity") if getattr(args, name) is not None]
    if unused and args.planner != "exact":
        is_, it = ("is", "it") if len(unused) == 1 else ("are", "them")
        raise UsageError(f"{' and '.join(unused)} {is_} of the search: add --planner exact, or leave {it} out")
    buffers = read_instance(args.file)
    start = time.process_time()
    found = plan_memory(buffers, args.planner, seconds=args.seconds or 30.0, seed=args.seed or 0, capacity=args.capacity)
    seconds = round(time.process_time() - start, 2)
    if args.draw:
        from .drawing import draw_memory

        draw_memory(buffers, found, os.path.basename(args.file)).save(args.draw)
    ratio = found.footprint / found.lower_bound if found.lower_bound else 1.0
    row = {"footprint": found.footprint, "lower_bound": found.lower_bound, "ratio": round(ratio, 4), "optimal": found.optimal,
           "planner": found.planner, "seconds": seconds}
    if args.json:
        return out(tables.to_json({**row, "offsets": dict(zip((b.name for b in buffers), found.offsets))}))
    rows = [{"id": b.name, "lower": b.start, "upper": b.end, "size": b.size, "offset": offset} for b, offset in zip(buffers, found.offsets)]
    out(tables.table(rows) if len(rows) <= BUFFERS else f"{len(rows):,} buffers: --json prints their offsets\n")
    out("\n" + tables.table([row]))


def generate(args) -> None:
    from . import compiler
    from .models.compiled import generate

    if args.threads and args.backend not in (None, "c"):
        raise UsageError("--threads is of the back end c: leave it out, or take --backend c")
    if args.plain and (args.backend or args.threads):
        raise UsageError("--plain runs the NumPy functions themselves: it goes with neither --backend nor --threads")
    extra = {"on_optimized": lambda done: complain(tables.table(tables.pass_rows(done)))} if args.stats else {}
    pieces = start = 0
    extra |= {"backend": args.backend or "", "threads": args.threads or 1} if args.backend or args.threads else {}
    cut: list[str] = []
    with compiler.telling(lambda: complain("compiling the model's graph: some seconds, and once only ...")):
        for piece in generate(" ".join(args.prompt), tokens=args.tokens, plain=args.plain, on_cut=cut.append, **extra):
            start = start or time.perf_counter()  # the first token waits for the whole prompt: it is not counted
            pieces += 1
            out(piece)
            sys.stdout.flush()
    out("\n")
    sys.stdout.flush()
    if cut:
        complain(f"[{cut[0]}{'; --tokens takes more' if args.tokens else ''}]")
    if args.stats and pieces > 1:
        complain(f"{(pieces - 1) / (time.perf_counter() - start):.1f} tokens/s after the first")


def doctor(args) -> int:
    from . import doctor

    if not args.json:
        return doctor.main()
    rows = doctor.rows()
    out(tables.to_json({"rows": rows}))
    return int(any(row.status == "missing" for row in rows))


def bench(args) -> None:
    check_suffix(args.out, ".json")
    from .bench import BENCHES, RECORDED

    if args.name not in BENCHES:
        hint = nearest(args.name, BENCHES) or f"there are {', '.join(BENCHES)}"
        raise UsageError(f"no benchmark is named '{args.name}': {hint}")
    if args.out and args.name not in RECORDED:
        raise UsageError(f"--out keeps what was measured on a named machine: it goes with {', '.join(RECORDED)}")
    if args.out and not os.path.isdir(os.path.dirname(args.out) or "."):
        raise UsageError(f"'{args.out}' cannot be written: there is no such folder")  # now, not after minutes
    rows = BENCHES[args.name]()  # of one table, or of several by name
    several = isinstance(rows, dict)
    if args.json:
        out(tables.to_json({"bench": args.name, "tables" if several else "rows": rows}))
    else:
        out("\n".join(f"{name}\n{tables.table(each)}" for name, each in rows.items()) if several
            else tables.table(rows))
    if args.out:
        from .recordings import save_recording

        save_recording(args.out, rows if several else {args.name: rows}, kind=args.name, machine=RECORDED[args.name](),
                       command=f"minigraph bench {args.name} --out FILE")


def fuzz(argv: list[str]) -> int:
    if any(argument.partition("=")[0] == "--backend" for argument in argv):
        from .fuzz_backends import main
    else:
        from .fuzz import main

    return main(argv)


# ---- the table of commands --------------------------------------------------------------------------------------

TARGET = (
    arg("target", type=given, metavar="TARGET", help="FILE.mg, - for standard input, or FILE.py:function (the file is run)"),
    arg("types", metavar="NAME=TYPE", nargs="*", default=[], help="a type for each parameter of a Python function, like 'x=f32[8,4]'"),
    arg("--spec", metavar="NAME=TYPE", action="append", default=[], help="the same as an option"),
)
PASSES = (
    arg("--passes", metavar="LIST", help=f"passes in order (default: {','.join(DEFAULT)})"),
    arg("--fast", metavar="FLAGS", default="", help="allow LLVM's fast-math flags: nnan,ninf,nsz,arcp,contract,afn,"
        "reassoc, or fast for all (default: none, so that every bit is kept)"),
)  # fmt: skip
OPT = arg("--opt", action="store_true", help="optimize first")
UNFUSED = arg("--unfused", action="store_true", help="a launch for each operation, to compare with")
JSON = arg("--json", action="store_true", help="print one JSON object")

# name -> (function, what it does, its arguments; None where the function reads them itself)
COMMANDS: dict[str, tuple[Callable, str, tuple | None]] = {
    "show": (show, "print a graph as text", (
        *TARGET, arg("--origins", action="store_true", help="add the source line of each node"),
        arg("--no-types", action="store_true", help="leave the types out"),
        arg("--stats", action="store_true", help="add launches, bytes and flops, as comments"), JSON)),
    "opt": (opt, "optimize a graph; print the difference, each step, and the cost after each pass", (
        *TARGET, *PASSES, arg("--report", action="store_true", help="leave the difference out"),
        arg("-q", "--quiet", action="store_true", help="print the optimized graph alone, or nothing with -o"),
        arg("-o", dest="output", type=given, metavar="OUT.mg", help="write the optimized graph"), JSON)),
    "run": (run, "run a graph with NumPy and print its outputs", (
        *TARGET, arg("-i", "--input", metavar="NAME=VALUE", action="append", default=[],
                     help="a number for every element, a list like [[1,2],[3,4]], FILE.npy, random, zeros or ones"),
        arg("--inputs", type=given, metavar="FILE.npz", help="inputs by name"), OPT, *PASSES,
        arg("--backend", choices=("reference", "numpy", "c", "cupy"), default="reference", help="what runs it (default: %(default)s, NumPy"
            " call by call; numpy: the plan in an arena; c: generated code; cupy: a GPU)"),
        arg("--seed", type=whole, default=0, metavar="N", help="of random inputs and random operations (default: 0)"),
        arg("-o", dest="output", type=given, metavar="OUT.npz", help="write the outputs"), JSON)),
    "why": (why, "say where a value comes from, or what became of it", (
        TARGET[0], arg("name", metavar="NAME", help="a value or output, before or after the passes"), *TARGET[1:], *PASSES)),
    "draw": (draw, "draw a graph (without -o: print it for Graphviz)", (
        *TARGET, arg("-o", dest="output", type=given, metavar="OUT", help="a file .svg, .png, .dot or .html"), OPT, *PASSES,
        arg("--diff", action="store_true", help="before and after the passes, in one picture"),
        arg("--steps", action="store_true", help="a page with a panel for each pass (with -o OUT.html)"))),
    "launches": (launches, "the launches of a graph: what is fused, bytes and flops of each, the arena", (
        *TARGET, OPT, *PASSES, UNFUSED,
        arg("--backend", choices=("numpy", "c", "cupy"), default="c", help="for which (default: %(default)s; the others have a library for products)"),
        arg("--explain", type=given, metavar="NAME", help="why this value is computed where it is"), JSON)),
    "code": (code, "the generated source of a graph", (
        *TARGET, OPT, *PASSES, UNFUSED, arg("--dialect", choices=("c", "cuda"), default="c", help="(default: %(default)s)"),
        arg("--threads", type=positive, metavar="N", help="of C (default: 1)"))),
    "plan": (plan, "place buffers in memory: FILE.csv with the columns id, lower, upper, size", (
        arg("file", type=given, metavar="FILE.csv"), arg("--planner", default="best_of_orders", metavar="NAME",
            help="naive, first_fit, best_fit, greedy_by_size, greedy_by_breadth, best_of_orders (default) or exact"),
        arg("--seconds", type=above_zero, metavar="N", help="of computing, for exact (default: 30)"),
        arg("--seed", type=whole, metavar="N", help="for exact (default: 0)"),
        arg("--capacity", type=whole, metavar="BYTES", help="exact stops where this is enough"),
        arg("--draw", type=given, metavar="OUT.svg", help="the buffers as rectangles: time by offset"), JSON)),
    "generate": (generate, "let SmolLM2-135M answer a prompt, through its optimized graph", (
        arg("prompt", metavar="PROMPT", nargs="+"),
        arg("--tokens", type=whole, default=128, metavar="N", help="at most (default: %(default)s)"),
        arg("--plain", action="store_true", help="run the NumPy functions, not the graph"),
        arg("--backend", choices=("c", "numpy", "reference"), help="c (packed weights; the default where there is a compiler),"
            " numpy or reference (float32)"),
        arg("--threads", type=positive, metavar="N", help="of the C back end (default: 1)"),
        arg("--stats", action="store_true", help="nodes after each pass and tokens/s, on standard error"))),
    "doctor": (doctor, "say what works here, and what to do about what does not", (JSON,)),
    "bench": (bench, "measure on this machine", (
        arg("name", metavar="NAME",
            help="passes (the compiler's own speed), cpu (kernels, beside other compilers), memory (planners), llm (tokens/s),"
            " accuracy (logits), quant and sparse (products), checker (the exercises' checks) or gpu (launches, kernels, tokens/s)"),
        arg("--out", type=given, metavar="FILE.json", help="with gpu: also write a recording, for minigraph/recordings/"), JSON)),
    "fuzz": (fuzz, "look for a graph that a pass gets wrong, or --backend numpy, c or cuda", None),
}  # fmt: skip

EXAMPLES = """\
examples:
  minigraph show model.py:mlp 'x=f32[8,4]' 'w=f32[4,4]' --origins
  minigraph opt a4.mg --fast nsz,nnan,ninf
  minigraph opt a4.mg --quiet | minigraph run - --input x=random
  minigraph why a4.mg h
  minigraph draw a4.mg --diff -o diff.svg

`minigraph COMMAND --help` describes a command. Exit status: 0 done, 1 wrong input, 2 wrong command line."""


def overview() -> str:
    commands = "".join(f"  {name:<10}{text}\n" for name, (_, text, _) in COMMANDS.items())
    return f"usage: minigraph COMMAND ...\n       minigraph --version\n\n{commands}\n{EXAMPLES}"


# ---- running one, and what can go wrong -------------------------------------------------------------------------


def dispatch(argv: list[str]) -> int:
    if not argv:
        complain(overview())
        return 2
    name, *rest = argv
    if name in ("-h", "--help", "-V", "--version"):
        out(f"minigraph {__version__}\n" if name in ("-V", "--version") else overview() + "\n")
        return 0
    if name not in COMMANDS:
        raise UsageError(f"there is no command '{name}': " + (nearest(name, COMMANDS) or "see minigraph --help"))
    function, text, arguments = COMMANDS[name]
    return function(rest if arguments is None else read_options(name, text, arguments, rest)) or 0


def attempt(argv: list[str]) -> int:
    """Run the command; what goes wrong becomes a sentence and a status."""
    try:
        return dispatch(argv)
    except SystemExit as stop:  # --help
        return stop.code if isinstance(stop.code, int) else 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if isinstance(error, OSError) and error.filename is None:
            raise  # standard output itself
        if os.environ.get("MINIGRAPH_DEBUG", "0") not in ("", "0"):
            complain(traceback.format_exc().rstrip())
        complain(f"minigraph: error: {sentence(error)}")
        return 2 if isinstance(error, UsageError) else 1


def sentence(error: Exception) -> str:
    if isinstance(error, MinigraphError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror or error}"
    if isinstance(error, ModuleNotFoundError):
        return f"this needs {error.name}, which is not installed here; `minigraph doctor` says what to do"
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}".rstrip(": ")
    return f"a bug in minigraph: {type(error).__name__}: {error} (MINIGRAPH_DEBUG=1 shows the traceback)"


def say_warning(show: Callable) -> Callable:
    """Our own warnings are sentences, without the line of our source; others, as of the user's file, stay as they are."""

    def said(message, category, *rest, **more) -> None:
        if issubclass(category, MinigraphWarning):
            complain(f"minigraph: warning: {message}")
        else:
            show(message, category, *rest, **more)

    return said


def main(argv: list[str] | None = None) -> int:
    """Run one command line, by default the process's own, and return its exit status."""
    argv = sys.argv[1:] if argv is None else list(argv)
    if sys.stdout is None:
        complain("minigraph: error: standard output is closed")
        return 1
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal without the letter is no reason to fail
    try:
        with warnings.catch_warnings():
            warnings.showwarning = say_warning(warnings.showwarning)
            status = attempt(argv)
        sys.stdout.flush()  # now, while a full disk or a closed pipe can still be reported
        return status
    except OSError as error:
        with contextlib.suppress(OSError, ValueError):  # so that Python's own last flush is silent
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return 141  # as if the signal had ended us, the way of cat and grep
        complain(f"minigraph: error: standard output: {error.strerror or error}")
        return 1
