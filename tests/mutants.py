"""Random mutants of sql/ and worker/recrawl/, and whether the tests see them. `make mutants ARGS="--count 20 --seed 7"`

Each mutant is one small change in a copy of the checkout: a comparison turned round, a constant changed, a condition
dropped, a statement removed. Only the tests that can see it run, until the first of them fails. A mutant that survives
is a question: is the change without effect, or does a test miss?

Run it as an ordinary user. As root, a mutant may change the machine: one removed the right to write in /dev/shm.
"""

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path, PurePath
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
# The tests that can see a mutant, by the start of its path. The first line that fits counts.
TESTS = {
    "sql/jobs": "tests/worker/jobs tests/sql",
    "sql/vitals": "tests/sql tests/worker/view tests/worker/cli",
    "sql/show": "tests/sql tests/worker/view tests/worker/cli",
    "sql": "tests/sql tests/worker/jobs tests/worker/client",
    "worker/recrawl/store": "tests/worker/store tests/worker/jobs tests/worker/cli",
    "worker/recrawl/model": "tests/worker/model tests/worker/jobs tests/worker/lab",
    "worker/recrawl/jobs": "tests/worker/jobs tests/worker/cli",
    "worker/recrawl/urlfrontier": "tests/worker/urlfrontier",
    "worker/recrawl/scrapy": "tests/worker/scrapy",
    "worker/recrawl/client": "tests/worker/client tests/worker/scrapy",
    "worker/recrawl/view": "tests/worker/view tests/worker/cli",
    "worker/recrawl/cli/urlfrontier.py": "tests/worker/urlfrontier tests/worker/cli",
    "worker/recrawl/cli/server.py": "tests/worker/cli tests/worker/setup",
    "worker/recrawl/cli": "tests/worker/cli tests/worker/jobs",
    "worker/recrawl/intake": "tests/worker/intake tests/worker/cli",
    "worker/recrawl/setup": "tests/worker/setup tests/worker/cli",
    "worker/recrawl": "tests/worker/test_words.py tests/worker/view tests/worker/cli",
}
NOT_MUTATED = ("/lab/", "_pb2.py")
DEFINED = re.compile(r"^ *(?:create or replace (?:function|view)|class|def) (\w+)", re.MULTILINE)
LONGEST, LONGEST_TEST = 1800, 300  # seconds: all tests of one mutant, and each of them
# PostgreSQL refuses such a mutant when the function is made, so no test is needed to see it.
STILLBORN = re.compile(
    r"psycopg\.errors\.(SyntaxError|Undefined\w+|DatatypeMismatch|AmbiguousFunction|Invalid\w+Definition)"
)

TURNED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "<>": "=",
          "+": "-", "-": "+", "least": "greatest", "greatest": "least"}  # fmt: skip
OPERATORS = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.Add: "+", ast.Sub: "-",
}  # fmt: skip


class Mutant(NamedTuple):
    path: str
    kind: str
    start: int  # in the file's text
    end: int
    new: str


# ---- what may change


def changed(number: float) -> float:
    return number + 1 if number < 10 else 2 * number


def of_python(path: str, text: str) -> Iterator[Mutant]:
    lines = [0]
    for line in text.encode().splitlines(keepends=True):
        lines.append(lines[-1] + len(line))

    def place(line: int, column: int) -> int:
        return len(text.encode()[: lines[line - 1] + column].decode())

    def span(node: ast.expr | ast.stmt) -> tuple[int, int]:
        return place(node.lineno, node.col_offset), place(node.end_lineno or 0, node.end_col_offset or 0)

    def between(left: ast.expr, right: ast.expr, operator: ast.AST) -> Iterator[Mutant]:
        old, start = OPERATORS.get(type(operator)), span(left)[1]
        if old and (found := re.search(rf"(?<!\S){re.escape(old)}(?!\S)", text[start : span(right)[0]])):
            yield Mutant(path, "comparison" if "=" in old or old in "<>" else "sign",
                         start + found.start(), start + found.end(), TURNED[old])  # fmt: skip

    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                yield from between(left, right, operator)
            case ast.BinOp(left=left, op=operator, right=right):
                yield from between(left, right, operator)
            case ast.Constant(value=bool(value)):
                yield Mutant(path, "constant", *span(node), str(not value))
            case ast.Constant(value=int() | float() as value):
                yield Mutant(path, "constant", *span(node), repr(changed(value)))
            case ast.BoolOp(values=[first, second]):
                yield Mutant(path, "condition", span(node)[0], span(node)[1], text[slice(*span(first))])
                yield Mutant(path, "condition", span(node)[0], span(node)[1], text[slice(*span(second))])
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield Mutant(path, "condition", *span(node), text[slice(*span(operand))])
            case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign():
                yield Mutant(path, "statement", *span(node), "pass")


IN_SQL = {
    "comparison": r"(?<=\s)(<=|>=|<>|<|>)(?=\s)",
    "sign": r"(?<=\s)[+-](?=\s)",
    "constant": r"(?<![\w.'$])\d+(\.\d+)?(?![\w.'])",
    "choice": r"\b(least|greatest)(?=\()",
    "condition": r"(?<=\n) +(and|or) (?!exists|[^\n]* (?:then|loop|else)\b)[^\n()]*(\([^\n()]*\))*[^\n()]*(?=\n)",
    "statement": r"(?<=\n)    +perform [^\n;]*(?=;\n)",
}


def of_sql(path: str, text: str) -> Iterator[Mutant]:
    """In functions and views. Comments and strings are blanked out first."""
    code = re.sub(r"--[^\n]*|'[^'\n]*'", lambda found: "'" * len(found[0]), text)
    for kind, pattern in IN_SQL.items():
        for found in re.finditer(pattern, code):
            old = found[0]
            if kind == "constant":
                new = str(changed(float(old) if "." in old else int(old)))
            else:
                new = {"condition": "", "statement": "    null"}.get(kind, TURNED.get(old, ""))
            yield Mutant(path, kind, found.start(), found.end(), new)


def mutants(folder: str, suffix: str) -> list[Mutant]:
    files = subprocess.check_output(["git", "ls-files", folder], cwd=ROOT, text=True).split()
    find = of_sql if suffix == ".sql" else of_python
    return [
        mutant
        for path in files
        if path.endswith(suffix) and not any(part in path for part in NOT_MUTATED)
        for mutant in find(path, (ROOT / path).read_text())
    ]


# ---- what is seen of it


def tests_of(path: str) -> list[str]:
    """The tests that can see a mutant of this file. The file that mirrors it, or else its folder, comes first: it tells
    most."""
    tests = next(tests for start, tests in TESTS.items() if path.startswith(start)).split()
    folders, name = PurePath(path).parts[:-1], PurePath(path).stem
    mirror = PurePath("tests/sql") if folders[0] == "sql" else PurePath("tests/worker", *folders[2:])
    nearest = str(file if (ROOT / (file := mirror / f"test_{name}.py")).exists() else mirror)
    is_more = nearest not in [*tests, "tests/worker"] and (ROOT / nearest).exists()
    return [nearest, *tests] if is_more else tests


def likely_files(path: str, what: str, tests: list[str]) -> list[str]:
    """Five files of these tests: those whose name has a word of the path, then those that name the changed function or
    class most often."""
    found = (([test] if test.is_file() else sorted(test.rglob("test_*.py"))) for test in map(ROOT.joinpath, tests))
    files = dict.fromkeys(chain.from_iterable(found))
    words = set(re.findall("[a-z]{4,}", path)) - {"worker", "recrawl"}
    shared = {file: len(words & set(re.findall("[a-z]{4,}", file.stem))) for file in files}
    counts = {file: len(re.findall(rf"\b{what}\b", file.read_text())) for file in files}
    likely = sorted((file for file in files if shared[file] or counts[file]), key=lambda f: (-shared[f], -counts[f]))
    return [str(file.relative_to(ROOT)) for file in likely[:5]]


def tried(mutant: Mutant, copy: Path, processes: str) -> tuple[str, str]:
    """The result of the mutant, and the test that saw it."""
    text = (copy / mutant.path).read_text()
    (copy / mutant.path).write_text(text[: mutant.start] + mutant.new + text[mutant.end :])
    tests = tests_of(mutant.path)
    defined = DEFINED.findall(text, 0, mutant.start) or [mutant.path]
    tests = [*likely_files(mutant.path, defined[-1], tests), *tests]  # so most mutants are seen soon
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", processes, "-m", "not bench and not soak"]
    command += ["-o", f"faulthandler_timeout={LONGEST_TEST}", "-o", "faulthandler_exit_on_timeout=true"]
    command += ["--keep-duplicates", *tests]  # without it pytest merges a file with its folder, and loses the order
    variables = {"PYTHONPATH": f"{copy / 'worker'}:{copy / 'tests'}", "CI": "1"}
    try:
        done = subprocess.run(
            command, cwd=copy, env=os.environ | variables, capture_output=True, text=True, timeout=LONGEST
        )
    except subprocess.TimeoutExpired:
        return "killed", f"it took more than {LONGEST} s"
    finally:
        (copy / mutant.path).write_text(text)
    if done.returncode == 0:
        return "SURVIVED", " ".join(tests)
    if "made_once" in done.stdout and STILLBORN.search(done.stdout):
        return "stillborn", ""
    return "killed", (re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE) or ["?"])[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--processes", default="2")
    parser.add_argument("--only", default="", help="the start of the paths to change, such as sql/hand_out")
    asked = parser.parse_args()
    chance = random.Random(asked.seed)
    both = (mutants("sql", ".sql"), mutants("worker/recrawl", ".py"))
    languages = [few for found in both if (few := [mutant for mutant in found if mutant.path.startswith(asked.only)])]
    places = " and ".join(str(len(found)) for found in languages)
    print(f"seed {asked.seed}; {places} places in SQL and in Python", flush=True)
    table: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory(prefix="recrawl-mutants-") as folder:
        for name in subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines():
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, Path(folder) / name)
        for nth in range(asked.count):
            found = languages[nth % len(languages)]
            kind = chance.choice(sorted({mutant.kind for mutant in found}))
            mutant = chance.choice([mutant for mutant in found if mutant.kind == kind])
            began = time.monotonic()
            text = (Path(folder) / mutant.path).read_text()
            line = text.count("\n", 0, mutant.start) + 1
            became, by = tried(mutant, Path(folder), asked.processes)
            table[mutant.path.rpartition(".")[2], became] += 1
            change = f"{text[mutant.start : mutant.end].strip()} → {mutant.new.strip() or 'nothing'}"
            print(f"{became:9} {mutant.path}:{line} {change}  [{by}, {time.monotonic() - began:.0f} s]", flush=True)
    for (language, became), count in sorted(table.items()):
        print(f"{language:4} {became:9} {count:4}")


if __name__ == "__main__":
    main()
