"""Python branches on traced values: the statement, the expression it tests, and a remedy, for error messages.

Found from the position of the running instruction and the syntax tree of its file, when an error is raised. Where the
source is not available, the general words remain.
"""

from __future__ import annotations

import ast
import linecache
from itertools import islice
from types import FrameType
from typing import NamedTuple

GENERAL = "`if`, `while`, `and`, `not` or `assert`"
REMEDY = "lax.cond(x > 0, lambda: a, lambda: b), tnp.where(x > 0, a, b), or lax.while_loop"
LONGEST = 60  # characters; a longer expression is not shown

Position = tuple[int, int, int, int]  # first line, last line, first column and last column in bytes


class Branch(NamedTuple):
    """Branch in the user's code. statement: in backticks. asked: the tested expression. remedy: in its words."""

    statement: str = GENERAL
    asked: str | None = None
    remedy: str = REMEDY


def branch_at(frame: FrameType | None) -> Branch:
    """Return the branch that the frame is taking."""
    if frame is None:
        return Branch()
    place = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), (None,) * 4)
    first, last, start, end = place
    if first is None or last is None or start is None or end is None:
        return Branch()
    source = "".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals))
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return Branch()
    path = _path(tree, (first, last, start, end))
    return _branch(path) if path else Branch()


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
                return Branch("`if`", _text(asked), _choice(test, *_results(node, outer)))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return Branch("`if`", _text(asked), _choice(test, _text(body), _text(orelse)))
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
