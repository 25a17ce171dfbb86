"""Python statements that need a traced value: branches, and writes into NumPy arrays, with a remedy for errors.

Found from the position of the running instruction and the syntax tree of its file, when an error is raised. Where the
source is not available, the general words remain.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Sequence
from itertools import islice
from types import FrameType
from typing import NamedTuple

import numpy as np

GENERAL = "`if`, `while`, `and`, `not` or `assert`"
REMEDY = "lax.cond(x > 0, lambda: a, lambda: b), tnp.where(x > 0, a, b), or lax.while_loop"
LONGEST = 60  # characters; a longer expression is not shown

Position = tuple[int, int, int, int]  # first line, last line, first column and last column in bytes


class Branch(NamedTuple):
    """Branch in the user's code. statement: in backticks. asked: the tested expression. remedy: in its words."""

    statement: str = GENERAL
    asked: str | None = None
    remedy: str = REMEDY


class Write(NamedTuple):
    """Write of an element of a NumPy array in the user's code. target: as written, `y[0]`. remedy: in its words."""

    target: str
    remedy: str


def branch_at(frame: FrameType | None) -> Branch:
    """Return the branch that the frame is taking."""
    path = _path_at(frame)
    return _branch(path) if path else Branch()


def write_at(frame: FrameType | None) -> Write | None:
    """Return the write into a NumPy array that the frame is running, None if it runs something else."""
    path = _path_at(frame)
    if frame is None or not path:
        return None
    match path[-1]:
        case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()):
            array = frame.f_locals.get(name, frame.f_globals.get(name))
            if isinstance(array, np.ndarray):
                return Write(_text(path[-1]), _as_ours(name, path))
        case _:
            pass
    return None


_MAKERS = frozenset(
    ("arange", "array", "asarray", "empty", "empty_like", "eye", "full", "full_like", "linspace", "ones", "ones_like",
     "zeros", "zeros_like")
)  # fmt: skip


def _as_ours(name: str, path: Sequence[ast.AST]) -> str:
    """Return the assignment that makes a variable an array of this package: as the user's, with tnp for np."""
    scope = next((n for n in path[::-1] if isinstance(n, ast.FunctionDef | ast.Lambda)), path[0])
    made: ast.expr | None = None
    for node in ast.walk(scope):
        match node:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                made = value
    match made:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="np" | "numpy"), attr=attr)) if attr in _MAKERS:
            call = ast.Call(ast.Attribute(ast.Name("tnp", ast.Load()), attr, ast.Load()), made.args, made.keywords)
            return f"{name} = {_text(call)}"
        case _:
            return f"{name} = tnp.asarray({name})"


def _path_at(frame: FrameType | None) -> list[ast.AST]:
    """Return the nodes from the root of the file to the expression that the frame is running; none if not found."""
    if frame is None:
        return []
    place = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), (None,) * 4)
    first, last, start, end = place
    if first is None or last is None or start is None or end is None:
        return []
    source = "".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals))
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return []
    return _path(tree, (first, last, start, end))


def _path(tree: ast.AST, place: Position) -> list[ast.AST]:
    """Return the nodes from the root down to the expression at the position; none if there is no such expression."""
    path: list[ast.AST] = [tree]
    while True:
        below = [node for node in ast.iter_child_nodes(path[-1]) if _holds(node, place)]
        if not below:
            return path if _position(path[-1]) == place else []
        path.append(below[0])


def _position(node: ast.AST) -> Position | None:
    if not isinstance(node, ast.expr | ast.stmt):
        return None
    return node.lineno, node.end_lineno or node.lineno, node.col_offset, node.end_col_offset or node.col_offset


def _holds(node: ast.AST, place: Position) -> bool:
    position = _position(node)
    if position is None:  # a comprehension or an argument list: look inside
        return any(_holds(child, place) for child in ast.iter_child_nodes(node))
    first, last, start, end = position
    return (first, start) <= (place[0], place[2]) and (place[1], place[3]) <= (last, end)


def _branch(path: list[ast.AST]) -> Branch:
    """Return the nearest statement or operator around the expression that tests its truth."""
    asked = path[-1]
    if isinstance(asked, ast.If | ast.IfExp | ast.While | ast.Assert):  # the instruction is the statement's own
        asked = asked.test
    for node, outer in zip(path[::-1], [*path[-2::-1], None], strict=True):
        match node:
            case ast.Compare(left=a, ops=[first, second, *_], comparators=[b, c, *_]) if node is asked:
                pairs = ast.Compare(a, [first], [b]), ast.Compare(b, [second], [c])
                return Branch("a chain of comparisons", None, f"tnp.logical_and({', '.join(map(_text, pairs))})")
            case ast.BoolOp(op=op, values=values):
                word = "and" if isinstance(op, ast.And) else "or"
                parts = ", ".join(map(_text, values[:2]))
                known = None if node is asked else _text(asked)
                return Branch(f"`{word}`", known, f"tnp.logical_{word}({parts}), on arrays of any shape")
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Branch("`not`", _text(operand), f"tnp.logical_not({_text(operand)})")
            case ast.If(test=test):
                return Branch("`if`", _text(asked), _recursion(path) or _choice(test, *_results(node, outer)))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                known = _recursion(path)
                return Branch("`if`", _text(asked), known or _choice(test, _text(body), _text(orelse)))
            case ast.comprehension():
                return Branch("`if`", _text(asked), f"tnp.where({_text(asked)}, a, b) on whole arrays")
            case ast.While(test=test):
                remedy = f"lax.while_loop(cond, body, carry), where cond returns `{_text(test)}` of the carry"
                return Branch("`while`", _text(asked), remedy)
            case ast.Assert(test=test):
                return Branch("`assert`", _text(asked), f"tracer.check({_text(test)}, message) raises when it runs")
            case ast.stmt():
                break
            case _:
                pass
    return Branch()


def _recursion(path: Sequence[ast.AST]) -> str | None:
    """Return the remedy for a function that calls itself, or None if the function does not.

    Both arms of a lax.cond are traced.
    """
    function = next((n for n in path[::-1] if isinstance(n, ast.FunctionDef)), None)
    if function is None:
        return None
    calls = (n for n in ast.walk(function) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name))
    if not any(isinstance(call.func, ast.Name) and call.func.id == function.name for call in calls):
        return None
    return (
        f"lax.while_loop(cond, body, carry) in place of the calls of `{function.name}` in itself, which tracing would "
        "follow for ever"
    )


def _choice(test: ast.expr, a: str, b: str) -> str:
    condition = _text(test)
    return f"lax.cond({condition}, lambda: {a}, lambda: {b}), or tnp.where({condition}, {a}, {b})"


def _results(node: ast.If, outer: ast.AST | None) -> tuple[str, str]:
    """Return the results of both arms of an `if`, where each is a single `return`."""
    after = node.orelse
    if not after and outer is not None:
        siblings = next((body for _, body in ast.iter_fields(outer) if isinstance(body, list) and node in body), [])
        after = siblings[siblings.index(node) + 1 :][:1] if siblings else []
    match node.body, after:
        case [ast.Return(value=ast.expr() as a)], [ast.Return(value=ast.expr() as b)]:
            return _text(a), _text(b)
        case _:
            return "a", "b"


def _text(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= LONGEST else "..."
