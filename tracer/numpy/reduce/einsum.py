"""`einsum`: sums of products over named axes, contracted pair by pair along the path that opt_einsum finds."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tracer.errors import ArgumentError, ShapeError, message
from tracer.ir import dtypes
from tracer.numpy.core.conversion import array_of, cast, dtype_of_argument, no_out, unified
from tracer.numpy.core.dtypes import check_cast
from tracer.numpy.shapes.matrices import diagonal
from tracer.primitives.arrays.reductions.reductions import reduce_or
from tracer.primitives.base.broadcasting import reduce_sum
from tracer.primitives.base.shapes import squeeze, transpose
from tracer.primitives.linalg.dot_general import dot_general
from tracer.trace.array import Array
from tracer.trace.integers import integer
from tracer.trace.source import here


def einsum(
    subscripts: Any, /, *operands: Any, out: None = None, optimize: Any = "auto", precision: Any = None,
    preferred_element_type: Any = None, dtype: Any = None, casting: str = "safe",
) -> Array:  # fmt: skip
    """Sum products over named axes: "ij,jk->ik" is a matrix product.

    subscripts: text; operands: as many arrays [*s] as it has terms. Letters absent after the arrow are summed over;
    without an arrow, the letters that occur once are kept, in alphabetical order. "..." stands for axes that broadcast.
    Lists of integers work too: einsum(x, [0, 1], y, [1, 2], [0, 2]). optimize: how opt_einsum orders the products.
    dtype: to which operands are cast first, if `casting` allows it. Returns the axes after the arrow, in the promoted
    dtype. Raises ShapeError for sizes that do not agree.

    >>> tnp.einsum("ij,j->i", tnp.ones((2, 3)), tnp.asarray([1.0, 2.0, 3.0]))
    Array([6., 6.], f64)
    """
    no_out("einsum", out)
    terms, result, arrays = _parsed(subscripts, operands)
    if dtype is not None:
        wanted = dtype_of_argument("einsum", dtype)
        for x in arrays:
            check_cast("einsum", x, wanted, casting)
        arrays = [cast(x, wanted) for x in arrays]
    arrays = unified("einsum", arrays)
    sizes = _sizes(terms, arrays)
    pending = [_without_repeats(x, term) for x, term in zip(arrays, terms, strict=True)]
    preferred = None if preferred_element_type is None else dtype_of_argument("einsum", preferred_element_type)
    for chosen in _path(terms, result, arrays, optimize):
        group = [pending.pop(i) for i in sorted(chosen, reverse=True)][::-1]
        later = set(result).union(*(term for _, term in pending))
        pending.append(_contracted(group, later, sizes, precision, preferred))
    x, term = pending[0]
    x, term = _summed(x, term, set(result))
    x = _ordered(x, term, result)
    return x if preferred is None else cast(x, preferred)


Term = tuple[Array, str]


def _parsed(subscripts: Any, operands: Sequence[Any]) -> tuple[list[str], str, list[Array]]:
    """Return each operand's letters, the result's letters, and the operands, with letters for every "..."."""
    if isinstance(subscripts, str):
        text = subscripts.replace(" ", "")
        arrays = [array_of("einsum", x) for x in operands]
    else:
        text, arrays = _from_sublists(subscripts, operands)
    left, arrow, result = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(arrays):
        raise ArgumentError(
            message(
                f"einsum{here()}: {len(terms)} terms in {text!r} for {len(arrays)} operands",
                help="write one term for each operand",
            )
        )
    terms, dots = _expanded(terms, arrays, text)
    if arrow:
        result = result.replace("...", dots)
    else:
        counts = Counter("".join(terms))
        result = dots + "".join(sorted(c for c, n in counts.items() if n == 1 and c not in dots))
    if not set(result) <= set("".join(terms)) or len(set(result)) != len(result):
        raise ArgumentError(
            message(
                f"einsum{here()}: the result names a letter twice, or an unknown one",
                f"got {text!r}",
                help="each letter after the arrow occurs once there, and before it",
            )
        )
    return terms, result, arrays


def _from_sublists(first: Any, rest: Sequence[Any]) -> tuple[str, list[Array]]:
    """Return einsum(x, [0, 1], y, [1, 2], [0, 2]) as text and operands."""
    given = [first, *rest]
    result = given.pop() if len(given) % 2 else None
    arrays = [array_of("einsum", x) for x in given[::2]]

    def letter(label: Any) -> str:
        number = integer("einsum", "a list of axes", label)
        return chr(ord("A") + number + 6 * (number > 25))

    def letters(sublist: Any) -> str:
        return "".join("..." if i is Ellipsis else letter(i) for i in sublist)

    text = ",".join(map(letters, given[1::2]))
    return (text if result is None else f"{text}->{letters(result)}"), arrays


def _expanded(terms: list[str], arrays: Sequence[Array], text: str) -> tuple[list[str], str]:
    unused = [c for c in map(chr, range(ord("Α"), ord("Α") + 40)) if c not in text]  # Greek: users write Latin
    longest, found = 0, []
    for term, x in zip(terms, arrays, strict=True):
        hidden = x.ndim - len(term.replace("...", ""))
        letters = term.replace("...", "")
        if hidden < 0 or ("..." not in term and hidden) or (letters and not letters.isalpha()):
            raise ShapeError(
                message(f"einsum{here()}: the term {term!r} of {text!r} does not fit its operand", f"got {x.type}")
            )
        found.append(hidden if "..." in term else 0)
        longest = max(longest, found[-1])
    dots = "".join(unused[:longest])
    return [t.replace("...", dots[longest - n :]) for t, n in zip(terms, found, strict=True)], dots


def _sizes(terms: Sequence[str], arrays: Sequence[Array]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for term, x in zip(terms, arrays, strict=True):
        for letter, n in zip(term, x.shape, strict=True):
            known = sizes.setdefault(letter, n)
            if known == 1:
                sizes[letter] = n
            elif n not in (1, known):
                raise ShapeError(
                    message(
                        f"einsum{here()}: the axes {letter!r} have different sizes",
                        f"got {' and '.join(str(a.type) for a in arrays)} for {','.join(terms)}",
                        f"sizes {known} and {n}",
                    )
                )
    return sizes


def _path(terms: Sequence[str], result: str, arrays: Sequence[Array], optimize: Any) -> list[tuple[int, ...]]:
    """Return the groups of operands to contract one after another, as indices among the remaining operands."""
    if len(terms) <= 2:
        return [tuple(range(len(terms)))] if len(terms) == 2 else []
    if isinstance(optimize, list | tuple):
        return [tuple(step) for step in optimize if step != "einsum_path"]
    if optimize is False:
        return [(0, 1)] * (len(terms) - 1)
    finder = importlib.import_module("opt_einsum")
    wanted = "auto" if optimize in (True, None) else optimize
    shapes = [x.shape for x in arrays]
    path, _ = finder.contract_path(",".join(terms) + "->" + result, *shapes, shapes=True, optimize=wanted)
    return [tuple(step) for step in path]


def _without_repeats(x: Array, term: str) -> Term:
    """Take diagonals for letters that occur twice in a term."""
    for letter, count in Counter(term).items():
        for _ in range(count - 1):
            first = term.index(letter)
            second = term.index(letter, first + 1)
            x = diagonal(x, 0, first, second)
            term = term[:first] + term[first + 1 : second] + term[second + 1 :] + letter
    return x, term


def _contracted(group: Sequence[Term], later: set[str], sizes: dict[str, int], precision: Any, preferred: Any) -> Term:
    """Return the product of one or more operands, summed over letters that are not needed later."""
    (x, a), *others = group
    if not others:
        return _summed(x, a, later)
    for position, (y, b) in enumerate(others):
        needed = later.union(*(term for _, term in others[position + 1 :]))
        x, a = _pair(_without_ones(x, a, b, sizes), _without_ones(y, b, a, sizes), needed, precision, preferred)
    return x, a


def _without_ones(x: Array, term: str, other: str, sizes: dict[str, int]) -> Term:
    """Drop axes of size 1 that broadcast against the other operand."""
    gone = [i for i, c in enumerate(term) if x.shape[i] == 1 and sizes[c] != 1 and c in other]
    return squeeze(x, gone), "".join(c for i, c in enumerate(term) if i not in gone)


def _summed(x: Array, term: str, needed: set[str]) -> Term:
    gone = [i for i, c in enumerate(term) if c not in needed]
    if not gone:
        return x, term
    kept = "".join(c for c in term if c in needed)
    return (reduce_or(x, gone) if x.dtype == dtypes.BOOL else reduce_sum(x, gone)), kept


def _pair(left: Term, right: Term, needed: set[str], precision: Any, preferred: Any) -> Term:
    """Contract two operands. Shared letters are batch axes if needed later; unneeded letters are summed."""
    (x, a), (y, b) = left, right
    x, a = _summed(x, a, needed | set(b))
    y, b = _summed(y, b, needed | set(a))
    shared = [c for c in a if c in b]
    batch = [c for c in shared if c in needed]
    contracted = [c for c in shared if c not in needed]
    numbers = (
        (tuple(map(a.index, contracted)), tuple(map(b.index, contracted))),
        (tuple(map(a.index, batch)), tuple(map(b.index, batch))),
    )
    product = dot_general(x, y, numbers, precision, preferred)
    free = [c for c in a if c not in shared] + [c for c in b if c not in shared]
    return product, "".join(batch + free)


def _ordered(x: Array, term: str, result: str) -> Array:
    return transpose(x, [term.index(c) for c in result])


def einsum_path(subscripts: str, /, *operands: Any, optimize: Any = "greedy") -> tuple[list[Any], Any]:
    """Return the order in which `einsum` multiplies the operands, and its cost, from opt_einsum.

    subscripts, operands, optimize: as in `einsum`; only the shapes of operands matter. Returns the path, a list of the
    positions of the operands of each step, and a text about it.

    >>> tnp.einsum_path("ij,jk,kl->il", *[tnp.ones((2, 2))] * 3)[0]
    [(0, 1), (0, 1)]
    """
    finder = importlib.import_module("opt_einsum")
    terms, result, arrays = _parsed(subscripts, operands)
    shapes = [x.shape for x in arrays]
    wanted = "auto" if optimize is True else optimize
    found: tuple[list[Any], Any] = finder.contract_path(
        ",".join(terms) + "->" + result, *shapes, shapes=True, optimize=wanted
    )
    return found
