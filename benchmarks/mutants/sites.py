"""`Mutant`: every operator, number and condition of a source file, and what it could be instead."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

OPERATORS: dict[type[ast.AST], tuple[str, tuple[str, ...]]] = {
    ast.Add: ("+", ("-",)), ast.Sub: ("-", ("+",)), ast.Mult: ("*", ("/",)),
    ast.Div: ("/", ("*",)), ast.FloorDiv: ("//", ("*", "/")), ast.Mod: ("%", ("//",)),
    ast.Pow: ("**", ("*",)), ast.MatMult: ("@", ("*",)), ast.LShift: ("<<", (">>",)),
    ast.RShift: (">>", ("<<",)), ast.BitAnd: ("&", ("|",)), ast.BitOr: ("|", ("&",)),
    ast.BitXor: ("^", ("&",)), ast.Lt: ("<", ("<=", ">=")), ast.LtE: ("<=", ("<", ">")),
    ast.Gt: (">", (">=", "<=")), ast.GtE: (">=", (">", "<")), ast.Eq: ("==", ("!=",)),
    ast.NotEq: ("!=", ("==",)), ast.Is: ("is", ("is not",)), ast.IsNot: ("is not", ("is",)),
    ast.In: ("in", ("not in",)), ast.NotIn: ("not in", ("in",)), ast.And: ("and", ("or",)),
    ast.Or: ("or", ("and",)), ast.USub: ("-", ("+",)), ast.UAdd: ("+", ("-",)),
    ast.Not: ("not", ("",)), ast.Invert: ("~", ("",)),
}  # fmt: skip
"""Spelling of an operator, and those that may take its place."""


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    file: str
    """Below `packages/rl/src/rapo`."""
    kind: str
    """operator, constant or condition."""
    scope: str
    """Dotted name of the function or class around it."""
    line: int
    begin: int
    """First byte that is replaced."""
    end: int
    before: str
    after: str
    context: str
    """The line of code that it stands in."""
    ordinal: int
    """Which of the same changes in the same scope; lines elsewhere in the file do not matter."""

    @property
    def key(self) -> str:
        """Twelve hex digits that stay the same while the scope's own code does."""
        told = (self.file, self.kind, self.scope, self.before, self.after, self.context)
        return sha256(repr((*told, self.ordinal)).encode()).hexdigest()[:12]

    def applied(self, source: bytes) -> bytes:
        """The file with the change in it."""
        return source[: self.begin] + self.after.encode() + source[self.end :]


def mutants_of(path: Path, root: Path) -> list[Mutant]:
    """Every mutant of a file, in the order of the file."""
    source = path.read_bytes()
    found = _Finder(source)
    found.visit(ast.parse(source))
    seen: dict[tuple[str, ...], int] = {}
    out = []
    for scope, kind, line, begin, end, after in found.changes:
        before = source[begin:end].decode()
        context = found.lines[line - 1].strip().decode()
        same = (scope, kind, before, after, context)
        seen[same] = seen.get(same, -1) + 1
        name = path.relative_to(root).as_posix()
        out.append(Mutant(name, kind, scope, line, begin, end, before, after, context, seen[same]))
    return out


class _Finder(ast.NodeVisitor):
    """Walks over what runs: annotations, docstrings and the words of messages are left out."""

    def __init__(self, source: bytes) -> None:
        self.source, self.lines = source, source.splitlines()
        starts, at = [], 0
        for line in source.splitlines(keepends=True):
            starts.append(at)
            at += len(line)
        self.starts = starts
        self.scope: list[str] = []
        self.changes: list[tuple[str, str, int, int, int, str]] = []

    def _place(self, node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return (
            self.starts[node.lineno - 1] + node.col_offset,
            self.starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def _add(self, kind: str, line: int, begin: int, end: int, after: str) -> None:
        self.changes.append((".".join(self.scope) or "module", kind, line, begin, end, after))

    def _operator(self, op: ast.AST, line: int, begin: int, end: int) -> None:
        """The operator stands alone between two bytes, but for parentheses and comments."""
        word, others = OPERATORS[type(op)]
        bare = re.sub(rb"#[^\n]*", lambda m: b" " * len(m[0]), self.source[begin:end])
        edge = r"\b" if word[0].isalpha() else ""
        spelled = edge + re.escape(word).replace(r"\ ", r"\s+") + edge
        hit = re.search(spelled.encode(), bare)
        assert hit is not None, (line, word, bare)
        for other in others:
            self._add("operator", line, begin + hit.start(), begin + hit.end(), other)

    def _condition(self, test: ast.expr) -> None:
        begin, end = self._place(test)
        text = self.source[begin:end].decode()
        self._add("condition", test.lineno, begin, end, f"not ({text})")

    def _scoped(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self.scope.append(node.name)
        for decorator in node.decorator_list:
            self.visit(decorator)
        if not isinstance(node, ast.ClassDef):
            for default in (*node.args.defaults, *(d for d in node.args.kw_defaults if d)):
                self.visit(default)
        for part in node.body:
            self.visit(part)
        self.scope.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._scoped(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._scoped(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        return

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self._operator(node.op, node.lineno, self._place(node.left)[1], self._place(node.right)[0])
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        begin, end = self._place(node.target)[1], self._place(node.value)[0]
        self._operator(node.op, node.lineno, begin, end)
        self.visit(node.value)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._operator(node.op, left.lineno, self._place(left)[1], self._place(right)[0])
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        parts = [node.left, *node.comparators]
        for op, left, right in zip(node.ops, parts, parts[1:], strict=False):
            self._operator(op, left.lineno, self._place(left)[1], self._place(right)[0])
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        self._operator(node.op, node.lineno, self._place(node)[0], self._place(node.operand)[0])
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) != "TYPE_CHECKING":
            self._condition(node.test)
            self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self._condition(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._condition(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._condition(test)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        for after in _others(node.value):
            self._add("constant", node.lineno, *self._place(node), after)


def _others(value: object) -> Iterator[str]:
    """What a number could be instead; text and None have no neighbours."""
    if isinstance(value, bool):
        yield str(not value)
    elif isinstance(value, int):
        yield str(value + 1)
        if value > 0:
            yield str(value - 1)
    elif isinstance(value, float):
        yield repr(value + 1.0)
        if value != 0:
            yield repr(value * 0.9)


def sample(root: Path, folders: tuple[str, ...], count: int, least: int, seed: int) -> list[Mutant]:
    """`count` mutants of the files below `root`, `least` or more of every folder.

    Of all sites those whose hash is smallest; a site has one mutant, drawn by hash as well. So an
    edit moves no other site in or out of the sample, but for the few that it makes room for.
    """

    def drawn(mutant: Mutant) -> str:
        return sha256(f"{seed} {mutant.key}".encode()).hexdigest()

    found: list[list[Mutant]] = []
    chosen: list[Mutant] = []
    for folder in folders:
        sites: dict[tuple[str, int, int, str], list[Mutant]] = {}
        for file in _files(root / folder):
            for mutant in mutants_of(file, root):
                place = (mutant.file, mutant.begin, mutant.end, mutant.kind)
                sites.setdefault(place, []).append(mutant)
        ones = sorted((min(options, key=_site(seed)) for options in sites.values()), key=drawn)
        chosen += ones[:least]
        found.append(ones[least:])
    rest = sorted((m for ones in found for m in ones), key=drawn)
    chosen += rest[: count - len(chosen)]
    return sorted(chosen, key=lambda m: (m.file, m.begin))


def _site(seed: int) -> Callable[[Mutant], str]:
    """Orders the mutants of one site, apart from how sites are ordered."""
    return lambda mutant: sha256(f"{seed} at {mutant.key}".encode()).hexdigest()


def _files(place: Path) -> list[Path]:
    return [place] if place.is_file() else sorted(place.rglob("*.py"))
