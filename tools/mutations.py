"""Makes small wrong changes of a source file, one at a time, for mutation testing (`tools/mutants.py`).

It is a pure function from source to mutants. It changes comparisons, arithmetic, numbers by one, truth values,
conditions, `and` and `or` and their operands, bounds of slices, returned values, codes and names in strings. It deletes
statements and swaps `break` and `continue`. It leaves out what no test of behaviour can see: annotations, docstrings,
imports, `__all__`, `slots=`, decorators (but not their arguments), declarations and blocks for type checkers, prose
(texts with a space). In SQL it changes comparisons, `AND` and `OR`, `NULL` and `NOT NULL`, the order, `min` and `max`.
"""

from __future__ import annotations

import ast
import builtins
import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

COMPARISONS: Final[dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
}
BRANCHES: Final = (ast.If, ast.While, ast.IfExp)
CACHES: Final = ("cache", "cached_property")
TYPE_WORDS: Final = {"TypeVar", "NewType", "cast"}
HEX: Final = re.compile(r"[0-9a-f]{8,}")
SQL: Final = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH|WHERE|FROM|AND|OR|ORDER|LEFT JOIN|JOIN|ON|INDEXED BY)\b")
SQL_CHANGES: Final = (
    (r"(?<![<>])<(?![=>])", "<="),
    (r"(?<![<>])>(?!=)", ">="),
    (r"<=", "<"),
    (r">=", ">"),
    (r"<>", "="),
    (r"(?<![<>]) = ", " <> "),
    (r"\bAND\b(?! \?)", "OR"),
    (r"\bOR\b(?! IGNORE)", "AND"),
    (r"\bDESC\b", "ASC"),
    (r"\bASC\b", "DESC"),
    (r"\bORDER BY (\w+)(?=$|\)| LIMIT)", r"ORDER BY \1 DESC"),
    (r"\bIS NULL\b", "IS NOT NULL"),
    (r"\bIS NOT NULL\b", "IS NULL"),
    (r"\bNOT (?=IN\b|EXISTS\b)", ""),
    (r"\bmin\(", "max("),
    (r"\bmax\(", "min("),
    (r" \+ 1\b", " + 2"),
    (r"\bDISTINCT ", ""),
)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: bytes `start` to `end` of the file become `text`.

    `before` and `after` are the lines it touches, without indentation. `function` is the qualified name of the
    function around it, and `within` that of the outermost one in whose body it lies, "" if it acts once: when the
    module is imported (a constant, a default, a field), or in a function that keeps its results.
    """

    path: str
    line: int
    last_line: int
    function: str
    within: str
    before: str
    after: str
    start: int
    end: int
    text: str

    def applied_to(self, source: bytes) -> bytes:
        """Return the whole file with the change."""
        return source[: self.start] + self.text.encode() + source[self.end :]


def mutants_of(path: str, source: bytes) -> list[Mutant]:
    """Return every mutant of a file that still is Python, in order of place; no two make the same file."""
    walk = _Walk(path, source)
    walk.children(ast.parse(source, path))
    found: dict[tuple[int, int, str], Mutant] = {(each.start, each.end, each.text): each for each in walk.found}
    return sorted(found.values(), key=lambda each: (each.start, each.end, each.text))


class _Walk:
    """One pass over a tree; collects mutants."""

    def __init__(self, path: str, source: bytes) -> None:
        self.found: list[Mutant] = []
        self._path = path
        self._source = source
        self._lines = source.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))
        self._names: list[str] = []  # of the classes and functions around
        self._within = ""
        self._in_function = False

    def children(self, node: ast.AST) -> None:
        """Visit the parts of a node that may be changed."""
        match node:
            case ast.FunctionDef(body=[ast.Expr(value=ast.Constant(value=builtins.Ellipsis))]):
                return  # a declaration of a Protocol
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._function(node)
            case ast.ClassDef():
                self._decorators(node.decorator_list)
                self._names.append(node.name)
                self._all([*node.keywords, *node.body])
                self._names.pop()
            case ast.AnnAssign():
                self._all([node.value] if node.value else [])
            case ast.arg() | ast.Import() | ast.ImportFrom() | ast.JoinedStr():
                return
            case ast.keyword(arg="slots"):
                return
            case ast.Call(func=ast.Name(id=name)) if name in TYPE_WORDS:
                return
            case _:
                self._all(list(ast.iter_child_nodes(node)))

    def _all(self, nodes: list[ast.AST]) -> None:
        for node in nodes:
            match node:
                case ast.Expr(value=ast.Constant()):  # a docstring
                    continue
                case ast.Assign(targets=[ast.Name(id="__all__")]) | ast.If(test=ast.Name(id="TYPE_CHECKING")):
                    continue
            if isinstance(node, ast.expr | ast.stmt | ast.Slice):
                for text in _alternatives(node, in_function=self._in_function):
                    self._add(node, text)
            # The changes of a comparison include its negation.
            if isinstance(node, BRANCHES) and not isinstance(node.test, ast.Compare | ast.Constant):
                self._add(node.test, _bracketed(_negated(node.test)))
            self.children(node)

    def _decorators(self, decorators: list[ast.expr]) -> None:
        for decorator in decorators:
            if isinstance(decorator, ast.Call):
                self._all([*decorator.args, *decorator.keywords])

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._decorators(node.decorator_list)
        self._all([default for default in (*node.args.defaults, *node.args.kw_defaults) if default])
        outer = self._within, self._in_function
        keeps = any(word in ast.unparse(decorator) for decorator in node.decorator_list for word in CACHES)
        if not self._in_function and not keeps:
            self._within = ".".join([*self._names, node.name])
        self._in_function = True
        self._names += [node.name, "<locals>"]
        self._all(list(node.body))
        del self._names[-2:]
        self._within, self._in_function = outer

    def _add(self, node: ast.expr | ast.stmt, text: str) -> None:
        last = node.end_lineno or node.lineno
        start = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[last - 1] + (node.end_col_offset or 0)
        if self._source[start:end].decode() == text:
            return
        first, final = self._starts[node.lineno - 1], self._starts[last]
        after = self._source[first:start] + text.encode() + self._source[end:final]
        self.found.append(
            Mutant(
                path=self._path,
                line=node.lineno,
                last_line=last,
                function=".".join(self._names).removesuffix(".<locals>"),
                within=self._within,
                before=" ".join(self._source[first:final].decode().split()),
                after=" ".join(after.decode().split()),
                start=start,
                end=end,
                text=text,
            )
        )


def _alternatives(node: ast.AST, *, in_function: bool) -> Iterator[str]:
    """The wrong texts for one node."""
    match node:
        case ast.Compare():
            for index, op in enumerate(node.ops):
                for other in COMPARISONS[type(op)]:
                    changed = copy.deepcopy(node)
                    changed.ops[index] = other()
                    yield _bracketed(changed)
        case ast.BinOp():
            yield _bracketed(ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right))
        case ast.BoolOp():
            yield _bracketed(ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values))
            for index in range(len(node.values)):
                others = [value for at, value in enumerate(node.values) if at != index]
                yield _bracketed(ast.BoolOp(node.op, others) if len(others) > 1 else others[0])
        case ast.UnaryOp():
            yield _bracketed(node.operand)
        case ast.Constant():
            yield from _other_values(node.value)
        case ast.JoinedStr():
            parts = [str(part.value) for part in node.values if isinstance(part, ast.Constant)]
            if parts and SQL.match(parts[0]):
                yield from _other_sql_parts(node)
            elif not any(" " in part for part in parts):
                yield ast.unparse(ast.JoinedStr([*node.values, ast.Constant("X")]))
        case ast.Slice() | ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            yield from _with_less(node)
        case ast.stmt():
            yield from _other_statements(node, in_function=in_function)


def _with_less(node: ast.Slice | ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Iterator[str]:
    """Remove a bound of a slice, or the conditions of one loop of a comprehension."""
    if isinstance(node, ast.Slice):
        if node.lower:
            yield ast.unparse(ast.Slice(None, node.upper, node.step))
        if node.upper:
            yield ast.unparse(ast.Slice(node.lower, None, node.step))
        return
    for index, generator in enumerate(node.generators):
        if generator.ifs:
            changed = copy.deepcopy(node)
            changed.generators[index].ifs = []
            yield ast.unparse(changed)


def _other_statements(node: ast.stmt, *, in_function: bool) -> Iterator[str]:
    match node:
        case ast.Break():
            yield "continue"
        case ast.Continue():
            yield "break"
        case ast.Return(value=ast.expr() as value):
            if isinstance(value, ast.Compare | ast.BoolOp) or _is_negation(value):
                yield from ("return True", "return False")
            elif not (isinstance(value, ast.Constant) and (value.value is None or isinstance(value.value, bool))):
                yield "return None"
        case ast.AugAssign():
            yield ast.unparse(ast.AugAssign(node.target, ARITHMETIC[type(node.op)](), node.value))
            yield "pass"
        case ast.Expr() | ast.Raise() | ast.Delete():
            yield "pass"
        case ast.Assign() | ast.AnnAssign(value=ast.expr()) if in_function:
            yield "pass"


def _negated(node: ast.expr) -> ast.expr:
    return node.operand if isinstance(node, ast.UnaryOp) and _is_negation(node) else ast.UnaryOp(ast.Not(), node)


def _is_negation(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def _other_values(value: object) -> Iterator[str]:
    if isinstance(value, bool):
        yield str(not value)
    elif isinstance(value, int):
        yield str(value + 1)
        yield str(value - 1) if value > 0 else f"({value - 1})"
    elif isinstance(value, str) and HEX.fullmatch(value):
        yield repr(value[:-1] + ("1" if value[-1] == "0" else "0"))  # still hex: the vector can be read
    elif isinstance(value, str) and SQL.match(value):
        yield from (repr(text) for text in _other_sql(value))
    elif isinstance(value, str) and " " not in value:
        yield repr(value + "X")
    elif isinstance(value, bytes):
        yield repr(value + b"X")


def _other_sql(text: str) -> Iterator[str]:
    """For every place, the text with that place changed. Assignments (`SET a = ?`) are left out."""
    for pattern, other in SQL_CHANGES:
        for place in re.finditer(pattern, text):
            if place[0] != " = " or _compares(text[: place.start()]):
                yield text[: place.start()] + place.expand(other) + text[place.end() :]


def _compares(before: str) -> bool:
    """Whether an `=` after this text compares: the last such keyword is not SET."""
    words: list[str] = re.findall(r"\b(SET|WHERE|ON|AND|WHEN)\b", before)
    return not words or words[-1] != "SET"


def _other_sql_parts(node: ast.JoinedStr) -> Iterator[str]:
    for index, part in enumerate(node.values):
        if isinstance(part, ast.Constant):
            for text in _other_sql(str(part.value)):
                changed = copy.deepcopy(node)
                changed.values[index] = ast.Constant(text)
                yield ast.unparse(changed)


def _bracketed(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if isinstance(node, ast.Constant | ast.Name) else f"({text})"
