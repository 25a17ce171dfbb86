"""The hunt for differences from NumPy: random calls of every function that both have, and each kind of difference once.

    python -m tests.numpy.hunt SECONDS [SEED]

Arguments are drawn by the names that NumPy gives its parameters: an `axis`, a mask for `where`, a number for `k`. What
the table of docs/numpy.md tells is left out by `TOLD`; what is printed is a fault, or a row that the table lacks.
`TOLD` goes by functions, not by rows, and so is blind to other faults of theirs.
"""

from __future__ import annotations

import inspect
import random
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tracer.numpy as tnp
from tests.numpy.comparison_cases import Call, Record
from tests.numpy.drawing import LAYOUTS, SPECIAL, laid_out
from tests.numpy.test_against_numpy import compare, outcome

DTYPES = ("bool", "int8", "int32", "int64", "uint8", "uint64", "float32", "float64", "complex64", "complex128")
SHAPES: list[tuple[int, ...]] = [(), (0,), (1,), (3,), (2, 3), (1, 3), (3, 0), (3, 3), (2, 1, 3)]
Draw = Callable[[random.Random, Any], Any]  # the second is the first array of the call


def array(rng: random.Random, like: Any = None, dtype: str | None = None) -> Any:
    """Small numbers, now and then special ones, in some layout; often of the shape and dtype of another array."""
    kin = like is not None and rng.random() < 0.7
    kind = np.dtype(dtype or (like.dtype.newbyteorder("=") if kin else rng.choice(DTYPES)))
    shape = like.shape if kin else rng.choice(SHAPES)
    numbers: list[Any] = [rng.randint(-4, 6) / rng.choice((1, 1, 4)) for _ in range(int(np.prod(shape)))]
    if kind.kind in "fc" and rng.random() < 0.3:
        numbers = [rng.choice(SPECIAL) if rng.random() < 0.3 else number for number in numbers]
    if kind.kind in "biu":
        numbers = [abs(int(number)) if kind.kind != "i" else int(number) for number in numbers]
    return laid_out(np.array(numbers, kind).reshape(shape), rng.choice((*LAYOUTS, "plain", "plain")))


def axis(rng: random.Random, x: Any) -> Any:
    return rng.choice((*range(-x.ndim, x.ndim), 7)) if x.ndim else None


def one_of(*values: Any) -> Draw:
    return lambda rng, x: rng.choice(values)


def places(rng: random.Random, x: Any) -> Any:
    return np.array([rng.randrange(-x.size, x.size) if x.size else 0 for _ in range(rng.randint(0, 3))], np.int64)


_ARRAYS = (
    "a a1 a2 ar1 ar2 arr ary array b bins choices condition element f fp m object p s test_elements u v val x x1 x2 "
    "xp y"
)
_NEEDED_ALONE = {*_ARRAYS.split(), "order"}  # an optional x, m or order means something else in every function
PARAMETERS: dict[str, Draw] = {
    **dict.fromkeys(_ARRAYS.split(), array),
    **dict.fromkeys(("axis", "axis1", "axis2", "source", "destination"), axis),
    **dict.fromkeys(("k", "offset", "shift", "decimals", "deg"), one_of(-2, -1, 0, 1, 5)),
    **dict.fromkeys(("keepdims", "right", "density", "returned", "equal_nan", "increasing"), one_of(True, False)),
    **dict.fromkeys(("arrays", "tup", "arys"), lambda rng, x: [array(rng, x), array(rng, x)]),
    **dict.fromkeys(("return_index", "return_inverse", "return_counts", "bias", "rowvar"), one_of(True, False)),
    **dict.fromkeys(("weights", "prepend", "append", "fill_value", "values"), array),
    **dict.fromkeys(("M", "N", "n", "num", "minlength"), one_of(0, 1, 3)),
    "ddof": one_of(0, 1, 5), "dtype": one_of(*DTYPES), "initial": one_of(0, 2), "indices": places, "ind": places,
    "kth": one_of(0, -1), "mask": lambda rng, x: array(rng, x, "bool"), "where": lambda rng, x: array(rng, x, "bool"),
    "mode": one_of("full", "same", "valid", "clip", "wrap", "edge", "reflect"), "pad_width": one_of(0, 2, (1, 2)),
    "obj": one_of(0, -1, [0, 0], slice(2)), "order": one_of("C", "F"), "q": one_of(0.0, 0.3, [0.5, 1.0]),
    "repeats": one_of(0, 2, -1), "reps": one_of(0, 2, (2, 1)), "sections": one_of(1, 2, [1]),
    "indices_or_sections": one_of(1, 2, [1]), "shape": one_of((3,), (-1,), (2, 3), (0,)),
    "new_shape": one_of((2, 2), (0,)), "side": one_of("left", "right"), "start": one_of(0, 1, -2.5),
    "stop": one_of(4, -1.5), "edge_order": one_of(1, 2),
}  # fmt: skip

# What gives text, memory or objects, whose comparison says nothing.
APART = re.compile(
    r"array_(repr|str)|array2string|empty(_like)?|[fi]info|format_float_.*|ndenumerate|from_dlpack|.*indices.*"
)

# Differences that docs/numpy.md tells: functions, and what is said of a call of theirs.
TOLD: tuple[tuple[str, str], ...] = (
    (r"degrees|radians|deg2rad|rad2deg|logaddexp2?|gradient|(nan)?(quantile|percentile)|positive", "NumPy refuses"),
    (r"reciprocal|floor_divide|mod|remainder|divmod|fmod|isscalar|trapezoid|unwrap|sign|poly(div|mul)|roots", "diff"),
    (r"round|around|cross|convolve|correlate|cum.*prod|power|pow|float_power|prod|partition|trim_zero.", "diff"),
    (r"tril|triu|cumulative_(sum|prod)|cum(sum|prod)|nancum(sum|prod)|squeeze|repeat|full_like|full|insert", "refused"),
    (r"clip|concat(enate)?|choose|common_type|unstack|frexp|average|cov|histogram|nanarg(max|min)|std", ".*"),
    (r"poly(add|sub|fit|div)|unravel_index|insert|put|putmask|unique_values|bincount|digitize|logspace|roots", ".*"),
    (r"power|pow|nanstd|(nan)?std|(nan)?var|conj(ugate)?|as(any)?array|ascontiguousarray|astype", ".*"),
    (r"(nan)?(mean|sum|quantile|percentile)|array|vander|corrcoef|linspace|geomspace|argpartition|i0|cum.*", "diff"),
    (r"poly(der|int)|round|around|ldexp|histogram.*", "NumPy refuses|differs"),
    (r"a?m(in|ax)|nan(sum|min|max|prod)|sum|prod|any|all", "NumPy refuses: non-broadcastable"),  # where= of more axes
    (r"full(_like)?|asarray_chkfinite|require|trace|nan(prod|cumsum|cumprod)|expm1|exp2|log1p|sinh", "diff"),
    (r"histogram2d|put_along_axis", "refused"),  # weights and values of nothing
    (r".*", r"refused here.*(does not fit|complex numbers do not become real|range for 0 axes)"),
)  # fmt: skip


def signature(name: str) -> dict[str, bool]:
    """The parameters of NumPy's function, and whether a call needs them."""
    function = getattr(np, name)
    if isinstance(function, np.ufunc):
        return dict.fromkeys(("x1", "x2")[: function.nin], True)
    named = inspect.signature(function).parameters.values()
    return {p.name: p.default is p.empty for p in named if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)}


def callable_names() -> Iterator[str]:
    """The functions of both namespaces whose needed arguments can be drawn."""
    for name in sorted(set(tnp.__all__) & set(np.__all__)):
        if inspect.isfunction(getattr(tnp, name)) and callable(getattr(np, name)) and not APART.fullmatch(name):
            try:
                needed = [parameter for parameter, is_needed in signature(name).items() if is_needed]
            except ValueError:  # written in C, without a signature
                continue
            if needed and all(parameter in PARAMETERS for parameter in needed):
                yield name


def draw(name: str, rng: random.Random) -> Call:
    first = array(rng)
    args: list[Any] = []
    options: dict[str, Any] = {}
    for parameter, is_needed in signature(name).items():
        if is_needed:
            is_first = not args and PARAMETERS[parameter] is array
            args.append(first if is_first else PARAMETERS[parameter](rng, first))
        elif parameter in PARAMETERS.keys() - _NEEDED_ALONE and rng.random() < 0.3:
            options[parameter] = PARAMETERS[parameter](rng, first)
    return tuple(args), options


def difference(name: str, call: Call) -> str | None:
    """What is said of a call where NumPy says something else."""
    theirs, ours = (outcome(namespace, name, call, Exception) for namespace in (np, tnp))
    failed, refused = isinstance(ours, Exception), isinstance(theirs, Exception)
    if failed and not type(ours).__module__.startswith("tracer."):
        return f"an error of no class of ours: {type(ours).__name__}: {ours}"
    if failed or refused:
        if failed and not refused:
            return f"refused here: {ours}"
        return f"NumPy refuses: {theirs}" if refused and not failed else None
    try:
        compare(ours[0], theirs[0], Record(None, units=2**12, absolute=2**16))  # type: ignore[arg-type]
    except (AssertionError, TypeError, ValueError) as error:
        return f"differs: {' '.join(str(error).split())}"
    return None


def findings(name: str, seed: int) -> Iterator[tuple[str, str]]:
    """What is wrong with the call that a seed gives, and is not told: its kind, and a text."""
    call = draw(name, random.Random(f"{name} {seed}"))
    text = difference(name, call)
    if text is None or any(re.fullmatch(n, name) and re.match(told, text) for n, told in TOLD):
        return
    kind = text.split(":")[0] + text.split(":")[-1][:20] * text.startswith("refused")
    yield f"numpy.{name} {kind}", f"{text[:300]}\n    {call}"[:900]


def hunt(seconds: float, seed: int) -> Counter[str]:
    """How often each kind of difference was found; each is printed when it is first."""
    names, found, calls, until = list(callable_names()), Counter[str](), 0, time.monotonic() + seconds
    while time.monotonic() < until:
        for name in names:
            calls += 1
            for kind, text in findings(name, seed):
                if kind not in found:
                    print(f"{name}, seed {seed}: {text}", flush=True)
                found[kind] += 1
        seed += 1
    print(f"{calls} calls of {len(names)} functions, {len(found)} kinds of differences; the next seed is {seed}")
    return found


if __name__ == "__main__":
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        hunt(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
