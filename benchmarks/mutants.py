"""Break code at random, and see whether its tests notice: a mutant that survives is what no test pins.

    python benchmarks/mutants.py selfroute/documents --tests tests/documents --seed 7 --number 16

Run it in the root of the project. Each mutant differs from the code in one place, which the seed chooses: a comparison,
`and` for `or`, `+` for `-`, `not`, a number by one, swapped arguments, a slice shorter by one, a statement or what is
returned left out. It stands in a copy of the tree, outside of it; there the fast tests run up to the first failure, and
draw the same examples of properties each time. Printed is what was changed where, and whether it was caught.

A survivor is equivalent, so that no input tells it from the code, or it shows a result that no test states yet. The
exit code is 1 if the tests fail on the code as it is, or if there is nothing to change.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import NamedTuple

LEFT_OUT = shutil.ignore_patterns(".git", ".venv*", "__pycache__", ".*_cache", ".hypothesis", "site", "dist")
PYTEST = ("-m", "pytest", "-x", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-m", "not matrix")
COMPARED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)  # in pairs
SYMMETRIC = {"max", "min"}
LEFT_ALONE = ("annotation", "returns", "decorator_list")  # fields of the syntax tree in which no result is decided
Change = tuple[ast.expr | ast.stmt, ast.expr | ast.stmt]


class Mutant(NamedTuple):
    """A file with one change: its path, the line, the change in words, and the code with it."""

    path: Path
    line: int
    change: str
    code: bytes


def changes(node: ast.AST) -> Iterator[Change]:  # noqa: C901, PLR0912 - a case for each kind
    """Yield what may be changed of a part of the syntax tree: what stands there, and what to put in its place."""
    one = ast.Constant(1)
    match node:
        case ast.Compare(left, operators, right):
            for at, operator in enumerate(operators):
                other = COMPARED[COMPARED.index(type(operator)) ^ 1]
                yield node, ast.Compare(left, [*operators[:at], other(), *operators[at + 1 :]], right)
        case ast.BoolOp(operator, values):
            yield node, ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values)
        case ast.BinOp(left, ast.Add() | ast.Sub() as operator, right):
            yield node, ast.BinOp(left, ast.Sub() if isinstance(operator, ast.Add) else ast.Add(), right)
        case ast.UnaryOp(ast.Not(), operand):
            yield node, operand
        case ast.Constant(bool() as value):
            yield node, ast.Constant(not value)
        case ast.Constant(int() | float() as value):
            yield node, ast.Constant(value + 1)
            yield node, ast.Constant(value - 1)
        case ast.Call(function, [first, second, *others], keywords) if ast.unparse(function) not in SYMMETRIC:
            yield node, ast.Call(function, [second, first, *others], keywords)
        case ast.Slice(lower, upper, _):
            if lower and not isinstance(lower, ast.Constant):
                yield lower, ast.BinOp(lower, ast.Add(), one)
            if upper and not isinstance(upper, ast.Constant):
                yield upper, ast.BinOp(upper, ast.Sub(), one)
        case ast.If(test) | ast.IfExp(test) | ast.While(test):
            yield test, ast.UnaryOp(ast.Not(), test)
        case ast.Return(ast.expr()):
            yield node, ast.Return(None)
        case ast.Expr(ast.Call()) | ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break():
            yield node, ast.Pass()


def changes_in(tree: ast.AST) -> Iterator[Change]:
    """Yield what may be changed of a part of the syntax tree and of what it holds, in its order."""
    if isinstance(tree, ast.JoinedStr):  # where things stand in it depends on the version of Python
        return
    yield from changes(tree)
    for name, value in ast.iter_fields(tree):
        for part in value if isinstance(value, list) else [value]:
            if name not in LEFT_ALONE and isinstance(part, ast.AST):
                yield from changes_in(part)


def mutant(path: Path, old: ast.expr | ast.stmt, new: ast.expr | ast.stmt) -> Mutant | None:
    """Return a file with one change; None if it then is no Python, or the same."""
    code, text = path.read_bytes(), ast.unparse(new)
    lines = [0, *accumulate(map(len, code.splitlines(keepends=True)))]
    start, end = lines[old.lineno - 1] + old.col_offset, lines[(old.end_lineno or 0) - 1] + (old.end_col_offset or 0)
    made = code[:start] + (f"({text})" if isinstance(new, ast.expr) else text).encode() + code[end:]
    try:
        is_same = ast.dump(ast.parse(made)) == ast.dump(ast.parse(code))
    except SyntaxError:
        return None
    change = f"{ast.unparse(old)} -> {text}   in: {code.splitlines()[old.lineno - 1].decode().strip()}"
    return None if is_same else Mutant(path, old.lineno, " ".join(change.split()), made)


def mutants(folder: Path, *, seed: int, number: int) -> list[Mutant]:
    """Return some of all mutants of a folder's files, by their places."""
    paths = [folder] if folder.is_file() else sorted(folder.rglob("*.py"))
    found = [(path, *change) for path in paths for change in changes_in(ast.parse(path.read_bytes()))]
    Random(seed).shuffle(found)  # noqa: S311 - a sample
    made: list[Mutant] = []
    while found and len(made) < number:
        if (one := mutant(*found.pop())) and one not in made:
            made.append(one)
    return sorted(made)


def is_caught(one: Mutant | None, tests: Sequence[str], *, seconds: float) -> bool:
    """Run the tests in a copy of the tree with a mutant, or without one; they also notice what goes on for too long."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "copy"
        shutil.copytree(Path.cwd(), copy, ignore=LEFT_OUT)
        if one:
            (copy / one.path).write_bytes(one.code)
        paths = os.pathsep.join(map(str, (copy, copy / "workbench")))
        environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, *PYTEST, "--hypothesis-seed=0", *tests]
        try:
            done = subprocess.run(command, cwd=copy, env=environment, timeout=seconds, capture_output=True, check=False)
        except subprocess.TimeoutExpired:
            return True
    return done.returncode != 0


def main() -> int:
    """Make mutants and print what became of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "folder", type=Path, help="the folder, or the file, to break; relative to the working directory"
    )
    parser.add_argument("--tests", nargs="+", default=["tests"], help="the folders and files of its tests")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--number", type=int, default=16, help="how many mutants")
    parser.add_argument("--seconds", type=float, default=300, help="how long the tests may take with one")
    parser.add_argument("--jobs", type=int, default=1, help="how many to try at once")
    given = parser.parse_args()
    made = mutants(given.folder, seed=given.seed, number=given.number)
    if not made or is_caught(None, given.tests, seconds=given.seconds):
        print("The tests fail on the code as it is." if made else "There is nothing to change.", file=sys.stderr)
        return 1
    with ThreadPoolExecutor(given.jobs) as threads:
        results = threads.map(lambda one: is_caught(one, given.tests, seconds=given.seconds), made)
        caught = 0
        for one, noticed in zip(made, results, strict=True):
            caught += noticed
            print(f"{'caught  ' if noticed else 'SURVIVED'}  {one.path}:{one.line}  {one.change[:200]}", flush=True)
    print(f"{caught} of {len(made)} caught")
    return 0


if __name__ == "__main__":
    sys.exit(main())
