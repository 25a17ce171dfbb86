"""Write docs/numpy.md: JAX's and NumPy's public names that tracer.numpy has not, and why; and the dtypes that differ.

Run:  python -m tools.numpy_table  (JAX's names come from tests/numpy/jax_names.json, which tools/jax_names.py writes)
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tracer.numpy as tnp
from tools.array_api_suite import WHY
from tools.jax_tables import ROOT, Stored
from tracer.numpy.arrays.absent import ABSENT
from tracer.numpy.arrays.absent_members import ABSENT_MEMBERS
from tracer.numpy.core import ufunc_keywords
from tracer.trace.parameters import NOT_TAKEN as NOT_TAKEN_OF_NUMPY

JAX = Stored(tnp)
TARGET = ROOT / "docs" / "numpy.md"

# Parameters of jax.numpy's functions that are not taken, and why.
NOT_TAKEN: dict[str, str] = {
    "_dot_general": "private to JAX",
    "a": "positional alone",
    "args": "named x, or x1 and x2",
    "arr": "a deprecated name of clip's first",
    "b": "positional alone",
    "dtype": "cast the operand or the result",
    "kwargs": "keywords are named",
    "method": "the algorithm is chosen by the sizes",
    "out_sharding": "arrays live on one device",
    "preferred_element_type": "cast the operands",
    "prototype": "positional, named x as the array API has it",
    "shapes": "any number of positional ones",
    "x": "positional alone",
    "y": "positional alone",
}

# Expressions whose dtypes are not NumPy's, but JAX's with 64 bits; both columns are computed.
DTYPES: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("ones(1, int64) + ones(1, float32)", lambda p: p.ones(1, p.int64) + p.ones(1, p.float32)),
    ("ones(1, int32) + ones(1, float16)", lambda p: p.ones(1, p.int32) + p.ones(1, p.float16)),
    ("ones(1, int32) / ones(1, int32)", lambda p: p.ones(1, p.int32) / p.ones(1, p.int32)),
    (
        "ones(1, uint64) + ones(1, int64) + ones(1, float32)",
        lambda p: p.ones(1, p.uint64) + p.ones(1, p.int64) + p.ones(1, p.float32),
    ),
    *(
        (f"{name}(ones(1, {dtype}))", lambda p, name=name, dtype=dtype: getattr(p, name)(p.ones(1, getattr(p, dtype))))
        for name, dtype in (("sin", "int8"), ("sin", "int32"), ("mean", "int32"), ("mean", "bool"))
    ),
    ("cumsum(ones(1, int8))", lambda p: p.cumsum(p.ones(1, p.int8))),
    (
        "bincount(zeros(1, int64), ones(1, int32))",
        lambda p: p.bincount(p.zeros(1, p.int64), p.ones(1, p.int32)),
    ),
    ("conj(ones(1, bool))", lambda p: p.conj(p.ones(1, p.bool_))),
    *(
        (f"{name}(ones(1, bool), ones(1, bool))", lambda p, name=name: getattr(p, name)(*[p.ones(1, p.bool_)] * 2))
        for name in ("floor_divide", "power", "left_shift")
    ),
    *(
        (f"{name}(ones(1, {dtype}))", lambda p, name=name, dtype=dtype: getattr(p, name)(p.ones(1, getattr(p, dtype))))
        for name, dtype in (
            ("rint", "uint8"),
            ("angle", "uint8"),
            ("square", "bool"),
            ("poly", "float16"),
            ("polyint", "float32"),
            ("vander", "int32"),
            ("sort_complex", "float32"),
            ("histogram_bin_edges", "int8"),
        )
    ),
    ("cov(eye(2, dtype=float32))", lambda p: p.cov(p.eye(2, dtype=p.float32))),
    ("float_power(ones(1, float32), 2)", lambda p: p.float_power(p.ones(1, p.float32), 2)),
    (
        "quantile(ones(1, float32), ones(1, float64))",
        lambda p: p.quantile(p.ones(1, p.float32), p.ones(1, p.float64)),
    ),
    (
        "interp(x, x, x) of x = ones(1, float32)",
        lambda p: p.interp(*[p.ones(1, p.float32)] * 3),
    ),
    ("linalg.eigvals(eye(2))", lambda p: p.linalg.eigvals(p.eye(2))),
    ("asarray(1.0) + ones(1, float32)", lambda p: p.asarray(1.0) + p.ones(1, p.float32)),
    ("asarray(1) + ones(1, int8)", lambda p: p.asarray(1) + p.ones(1, p.int8)),
    ("full(2, 1) + ones(2, int8)", lambda p: p.full(2, 1) + p.ones(2, p.int8)),
)

# What else is otherwise than in NumPy.
DIFFERENT = (
    ("Python numbers and `asarray` of one", "an array of a Python number is int64, float64 or complex128",
     "it is weak: it takes on the dtype of what it meets"),
    ("floats of 8 bits and fewer", "by ml_dtypes", "computed with in float32, rounded after every operation"),
    ("integers of 4 bits and fewer", "by ml_dtypes", "computed with in 8 bits, wrapped after every operation"),
    ("arrays of two narrow dtypes, or of one and a wider", "some are promoted", "refused, as in JAX: cast one"),
    ("floats out of range to narrow integers", "wrap", "the nearest integer of the dtype, as in JAX; 0 of NaN"),
    ("a Python integer that does not fit", "OverflowError", "DTypeError"),
    ("float to integer, out of range", "whatever the processor gives, or an error",
     "the nearest integer of the dtype; 0 of NaN"),
    ("`x // 0`, `x % 0` and `fmod(x, 0)` of integers", "0, with a warning",
     ("`0 // 0` is -1, other signed quotients are -2 and unsigned ones the largest number, as in JAX; remainders are "
      "0; `config.debug_division` raises DivisionError with the line")),
    ("`sign` of complex infinities", "finite", "NaN, as of x / abs(x); 0 where that overflows"),
    ("products, powers and determinants with complex infinities, and chains of products with any",
     "NaN or infinity, by the order of multiplication", "NaN or infinity, by two other orders, eagerly and under jit"),
    ("`exp2`, `expm1`, `log1p` and `sinh` of complex numbers of extreme parts", "some are inexact, or NaN",
     "by C99 and the array API"),
    ("reductions, scans, `packbits` and `squeeze` of arrays without axes over `axis=0`", "over nothing",
     "refused, as by the array API"),
    ("`where=` of more axes than what is reduced has", "ValueError", "the operand is broadcast, as in JAX"),
    ("weights of no values, and what is written to no places", "of any shape", "of the values' shape only"),
    ("`tril` and `triu` of vectors", "of the matrix of equal rows", "refused"),
    ("`polydiv` and `partition`", "remainders cut short; in some order", "of a fixed length; sorted"),
    ("`polymul` of leading zeros", "cuts them off", "keeps them, as in JAX"),
    (
        "`convolve`, `correlate`, `polymul` with infinities in the shorter vector", "multiplied where both exist",
        "NaN where they meet the zeros beyond the ends, as in JAX of float32",
    ),
    ("quantiles of integers by methods that choose an element", "integers", "floats, as in JAX"),
    ("quantiles between an infinity and itself", "NaN", "the infinity"),
    ("`nanargmax` and `nanargmin` where all is NaN", "ValueError", "-1, as in JAX"),
    ("`histogram` of a range that floats cannot divide", "ValueError", "bins of no width"),
    ("`average` and `cov` of weights that sum to zero", "ZeroDivisionError", "NaN, as in JAX"),
    ("`roots`, `linalg.eig` and `linalg.eigvals` that are all real", "real",
     "complex, as in JAX: dtypes follow from dtypes"),
    ("`roots`", "in the order of a matrix's eigenvalues; LinAlgError for NaN and infinities", "in another; NaN"),
    ("`poly` of complex roots in conjugate pairs", "real", "complex, as in JAX: dtypes follow from dtypes"),
    ("`polyfit` under jit, and of what is differentiated", "of any points, with `full=` and `rcond=`",
     "of deg + 1 different `x` at least, without these"),
    ("`linalg.cholesky` of NaN", "NaN, or LinAlgError, as LAPACK has it", "MatrixError"),
    ("`linalg.eigh` and `eigvalsh` without `UPLO`", "of the lower triangle", "of (a + a^H) / 2, as in JAX"),
    ("`linalg.pinv` without a tolerance", "1e-15", "10 max(m, n) roundings of the dtype, as in JAX"),
    ("`linalg.lstsq` of dependent columns", "no residuals", "residuals: shapes follow from shapes"),
    ("`reciprocal` of integers", "integers, cut short", "floats, as in JAX"),
    ("`dot`, `inner`, `convolve`, `correlate` and `mean` that come to zero", "0: sums begin with it",
     "the sign that the products have: a sum of one number is that number"),
    ("`max`, `min`, `maximum`, `fmax`, `clip` and their like, sets, of zeros of both signs", "either of the two",
     "0 is greater than -0, under jit, too"),
    ("quantiles of zeros of both signs; the edges of `histogram`", "signs and last digits of its interpolation",
     "our interpolation: apart from NaN and infinities they agree to rounding"),
    ("`cross` of two components beside three, with NaN or infinities", "leaves out the missing component",
     "0 in its place: NaN where it meets either"),
    ("`gradient`, quantiles, `positive` and `trapezoid` of bools", "TypeError, or `or` for sums",
     "as of the integers 0 and 1"),
    ("`round` of bools", "float16",
     "bools"),
    ("`mean`, `var` and `std` with an integer `dtype=`", "sums and squares wrap in it",
     "`mean` and `var` cast at the end; `std` refused"),
    ("`unwrap` of integers", "differences wrap, or OverflowError",
     "computed in floats, unless `period` is whole"),
    ("`spacing` of negative float16", "positive", "negative, as of the other floats"),
    ("`arange(-3, 5, 0.3, dtype=int)`", "the step is the difference of the first two, cast", "every value is cast"),
    ("`nanquantile` and `nanpercentile` of nothing", "one NaN for any count", "one NaN for each quantile"),
    ("`i0` of infinities", "NaN", "infinite, as in SciPy"),
    ("`abs(z, dtype=)` of complex numbers", "of the result", "of the operand"),
    ("`isscalar` of arrays without axes", "False", "True, as in JAX"),
    ("`unique_values`, and `unique` with `sorted=False`", "in some order", "sorted"),
    ('`order="A"` and `"K"`', "by the order in memory", 'as `"C"`'),
    ("`concatenate`, `stack` and their like with `dtype=`", 'casts of the same kind, unless `casting="unsafe"`',
     "any, as in JAX, unless `casting=` is given"),
    ("`repeat` by floats, `reshape` to sizes below -1, windows of broken lengths", "cut short, taken as -1, off centre",
     "refused"),
    ("`choose` by uint64, `clip` with one bound by position, `round(x)`, `fftshift` of one", "refused", "answered"),
    ("places out of range in `choose`, `partition`, `ravel_multi_index` and `unravel_index`", "ValueError",
     "OutOfBoundsError, an IndexError"),
    ("`split` into 0 parts, `fftfreq(0)`", "ZeroDivisionError", "ShapeError and ArgumentError, which are ValueErrors"),
    ("`put`, `putmask`, `place`, `copyto`, `fill_diagonal`", "None", "the updated array"),
    ("sums of all elements, and other results of one", "NumPy scalars", "arrays without axes"),
    ("`trim_zeros` of lists", "lists", "arrays"),
    ("`degrees`, `radians`, `logaddexp`, `logaddexp2` of complex numbers", "TypeError",
     "computed by the same formula"),
    ("`cumulative_sum` and `cumulative_prod` of arrays without axes", "vectors of one element",
     "refused, as by the array API"),
    ("`poly` of a matrix; `polyadd` and `polysub` of more than vectors", "of its eigenvalues; row by row",
     "refused"),
    ("`linalg.outer` of more than vectors", "ValueError",
     "flattened, as by `outer`"),
    ("`take` at bools", "at the indices 0 and 1",
     "ArgumentError: `x[mask]` selects by bools"),
    ("`argsort` of equal elements", "in some order, unless `stable` is asked for",
     "in their order"),
    ("complex to real", "a warning", "DTypeError: take `.real`"),
    ("integers to negative powers in an array", "ValueError", "no meaningful number, as in JAX: take floats"),
    ("in-place operators and `x[i] = v`", "write to memory that views share", "rebind the name to a new value"),
    ("`x.sort()`", "sorts in place, returns None", "returns another array and leaves x, as in JAX: `x = x.sort()`"),
    ("`x[a][b] = v`, `x.T[i] = v`", "write through a view", "MutationError: the write would be lost; `x[a, b] = v`"),
)  # fmt: skip

_HEAD = """# tracer.numpy beside jax.numpy and NumPy

Written by `tools/numpy_table.py`; compared with jax.numpy {jax}.

`tracer.numpy` has {here} of the {total} public names of `jax.numpy`, and {more} more.
"""


# Names without an example of their own: numbers, which are weak in promotion, and classes of NumPy's.
CONSTANTS = (
    "ComplexWarning", "False_", "True_", "__array_api_version__", "character", "complexfloating", "e", "euler_gamma",
    "flexible", "floating", "generic", "inexact", "inf", "integer", "nan", "newaxis", "number", "object_", "pi",
    "signedinteger", "unsignedinteger",
)  # fmt: skip


def constant(name: str) -> str:
    """What a name stands for that is neither a function nor a dtype with an example."""
    value = getattr(tnp, name)
    if not isinstance(value, type):
        return f"`{value!r}`"
    kinds = [kind for kind in ("int8", "uint8", "float16", "complex64") if tnp.issubdtype(getattr(tnp, kind), value)]
    shown = ", ".join(f"`{kind}`" for kind in kinds)
    return f"`numpy.{value.__name__}`{f', for `issubdtype`, of {shown} and wider ones' if kinds else ''}"


def not_taken_of_jax() -> dict[str, list[str]]:
    """The parameters of JAX's functions that ours have not, nor take as NumPy's keywords; with the functions."""
    lacking = ((parameter, name) for parameter, names in JAX.not_taken().items() for name in names)
    found: dict[str, list[str]] = {}
    for parameter, name in lacking:
        if parameter not in ufunc_keywords.taken(name):
            found.setdefault(parameter, []).append(name)
    return found


def not_taken_of_numpy() -> dict[str, list[str]]:
    """As `not_taken`, for NumPy's functions: what may be given by name."""
    found: dict[str, list[str]] = {}
    for name in sorted(set(np.__all__) & set(tnp.__all__)):
        function, ours = getattr(np, name), getattr(tnp, name)
        if not callable(function) or isinstance(function, type) or not inspect.isfunction(ours):
            continue
        own = inspect.signature(ours).parameters
        if any(p.kind is p.VAR_KEYWORD for p in own.values()):  # handed on to NumPy
            continue
        taken = own.keys() | ufunc_keywords.taken(name)
        try:
            parameters = inspect.signature(function).parameters.values()
        except ValueError:  # written in C, without a signature
            continue
        for p in parameters:
            if p.name not in taken and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
                found.setdefault(p.name, []).append(name)
    return found


def _lines() -> Iterator[str]:
    names = JAX.names
    here = [name for name in names if name in tnp.__all__]
    more = len(set(tnp.__all__) - set(names))
    yield _HEAD.format(jax=JAX.version, here=len(here), total=len(names), more=more).rstrip()
    yield "\n## Where dtypes differ from NumPy's\n\n| expression | NumPy | here |\n|---|---|---|"
    for expression, call in DTYPES:
        ours = call(tnp)
        yield f"| `{expression}` | {call(np).dtype} | {ours.dtype}{', weak' if ours.weak_type else ''} |"
    yield "\n## Where results differ from NumPy's\n\n| subject | NumPy | here |\n|---|---|---|"
    for row in DIFFERENT:
        yield f"| {' | '.join(row)} |"
    yield "\n## Constants and NumPy's own classes\n\n| name | value |\n|---|---|"
    for name in CONSTANTS:
        yield f"| `{name}` | {constant(name)} |"
    yield "\n## Missing names\n\n| name | why |\n|---|---|"
    for name in sorted(ABSENT):
        yield f"| `{name}` | {ABSENT[name]} |"
    yield "\n## Missing members of ndarray and JAX's Array\n\n| name | why |\n|---|---|"
    for name, why in sorted(ABSENT_MEMBERS.items()):
        yield f"| `{name}` | {why} |"
    yield "\n## Parameters of jax.numpy that are not taken\n\n| parameter | why |\n|---|---|"
    for parameter in sorted(not_taken_of_jax()):
        yield f"| `{parameter}` | {NOT_TAKEN[parameter]} |"
    yield "\n## Parameters of NumPy that are not taken\n\n| parameter | why |\n|---|---|"
    for parameter, why in NOT_TAKEN_OF_NUMPY.items():
        yield f"| `{parameter}` | {why} |"


def _of_the_suite() -> Iterator[str]:
    """What the last run of the array API's public suite left, from its log."""
    log = sorted((ROOT / "tests" / "numpy" / "results").glob("*-array-api-suite.txt"))[-1]
    kept = log.read_text(encoding="utf-8")
    facts = dict(re.findall(r"^(date|suite|standard|run) +(.*)$", kept, re.MULTILINE))
    counts = re.findall(r"^  (tracer.numpy|array_api_strict) +(.*)$", kept, re.MULTILINE)
    yield "\n## The public suite of the array API\n"
    run = f"`tools/array_api_suite.py` ran {facts['suite'].split()[0]} on {facts['date']}, standard {facts['standard']}"
    yield textwrap.fill(f"{run}; {facts['run']}. No test was skipped by us.", 120) + "\n"
    yield "| tests | `tracer.numpy` | array_api_strict |\n|---|---|---|"
    for title, (ours, strict) in zip(
        ("outside linalg and fft", "linalg and fft"), (counts[:2], counts[2:]), strict=True
    ):
        yield f"| {title} | {ours[1]} | {strict[1]} |"
    lost = re.findall(r"^    (test_.*)$", kept, re.MULTILINE)
    yield "\nFailed tests. array_api_strict fails them too, always or at random:\n"
    yield "| name of the test contains | count | why |\n|---|---|---|"
    for part, why in WHY.items():
        found = sum(part in test for test in lost)
        if found:
            yield f"| `{part}` | {found} | {why} |"
    for test in lost:
        if not any(part in test for part in WHY):
            yield f"| `{test}` | 1 | open |"


def text() -> str:
    """The page."""
    return "\n".join((*_lines(), *_of_the_suite())) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
