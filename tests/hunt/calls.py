"""The hunt for calls of public functions that go wrong: compiled, batched, differentiated, beside JAX and SciPy.

A call ends in a result or in one of the project's own errors; `jit` and `vmap` of it give that result, and so does JAX
where it is installed, else SciPy, else a few lines of NumPy. `TOLD` has the differences that the documents tell.
"""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.linalg
import scipy.signal
import scipy.special
import scipy.stats

import tracer
import tracer.numpy as tnp
from tests.hunt.drawing import Call, draw, filled
from tests.laws.hunt import TooSlowError
from tracer import errors
from tracer.ir.primitive import Pointwise
from tracer.primitives.catalogue import CATALOGUE

try:
    import jax
    import jax.numpy
    import jax.scipy
except ImportError:  # an extra of the benchmarks
    jax = None

BUGS = (errors.InternalError, errors.LeakedTracerError)
# Errors that depend on values, which traced calls do not know, or find out only while they run.
OF_VALUES = (errors.MatrixError, errors.OutOfBoundsError, errors.DivisionError, errors.CheckError)
UNTRACED = (errors.TracedValueError, errors.NoRuleError, errors.MutationError)
BITWISE = frozenset(f"lax.{p.name}" for p in CATALOGUE if isinstance(p.lower, Pointwise))
# How far results may be apart, relative to the largest number of a result: of two ways to run, and of two libraries.
WAYS = {"float64": 1e-9, "complex128": 1e-9, "float32": 1e-3, "complex64": 1e-3, "float16": 2e-2, "bfloat16": 1e-1}
LIBRARIES = {"float64": 1e-6, "complex128": 1e-6, "float32": 1e-2, "complex64": 1e-2, "float16": 5e-2, "bfloat16": 3e-1}

# Functions whose results at infinities depend on the order of sums.
MIXING = r"lax\.(linalg|conv|dot|fft|batch)|case |scipy\.(linalg|signal)|numpy\.(linalg|fft)|nn.dot_product"

# Differences that are meant: functions, what is said of a call of theirs, and where that is told, or why it is right.
TOLD: tuple[tuple[str, str, str], ...] = (
    (".*", r"beside \w+ here DTypeError", "dtypes that an operation does not compute on are refused, with the remedy"),
    (
        r"(lax\.|case ).*",
        "beside JAX .*(must have equal shapes|takes arrays of one shape)",
        "tracer.numpy broadcasts axes of size 1, not lax",
    ),
    (r"(lax\.|case ).*", "beside JAX .*over no elements", "an extreme of nothing has no value, as in NumPy"),
    (r"(lax\.|case ).*", "beside JAX .*(slice sizes must|expected 0 <= start)", "windows lie within the operand"),
    (r"lax\.broadcast_to_rank", "beside JAX .*rank must not fall", "squeeze drops axes"),
    (r"numpy\.fft\..*", "beside JAX .*(at least one sample|half needs an axis)", "NumPy refuses no samples as well"),
    (r"random\..*", "beside JAX .*(must broadcast to the shape|an axis of the result)", "shapes are of whole results"),
    (r"scipy\.linalg\..*", "beside JAX (shape|.*(see vmap|one element fewer))", "vectors are flattened, as by SciPy"),
    (
        r".*linalg\.(eigh?|eigh_tridiagonal|svd|qr|qr_multiply|schur|hessenberg|tridiagonal|eigvals)",
        r".*beside \w+ .*values|(vmap|jit of (second )?gradient) has other values",
        "vectors are unique to a factor, eigenvalues to their order",
    ),
    (
        r".*linalg\.(eigh|svd)",
        "jit has other values",
        "vectors of stacks are unique to a factor: lanes choose their own",
    ),
    (
        r".*linalg\.(eigh|eigvalsh)",
        "beside JAX here ShapeError.*square",
        "JAX adds rows to columns, where there are no matrices",
    ),
    (r"numpy\.linalg\.lstsq", "beside JAX dtype", "singular values are real, also those of an empty complex matrix"),
    (r"scipy\.linalg\.(logm|sqrtm|expm|funm)", r"beside \w+ values: complex128", "SciPy computes in complex64"),
    (r"numpy\.(binary_repr|min_scalar_type)", "(jit|vmap) refuses, ArgumentError", "texts and types are no results"),
    (r"numpy\.linalg\.lstsq", "beside JAX shape", "residuals are empty unless rows exceed columns, as in NumPy"),
    (
        r"scipy\.linalg\.fiedler_companion",
        "beside SciPy here",
        "of one number or none there is no matrix, only a vector",
    ),
    (
        r"numpy\.linalg\.(eigh|eigvalsh)",
        "beside JAX values",
        "UPLO names the triangle, as in NumPy; JAX takes the mean",
    ),
    (r"numpy\.fft\.i?fft[n2]", "beside JAX dtype", "of no axes the result is a copy, as NumPy's"),
    (r"lax\.pow", "beside JAX values: complex", "0 to a complex power is 0, as in NumPy; XLA has NaN"),
    (r"scipy\.special\.expn", "beside JAX values", "JAX has 1 / n at 0, where SciPy and the integral have 1 / (n - 1)"),
    (r"scipy\.stats\.multinomial\..*", r"beside \w+ values", "0 where n is not whole, as the docstring says"),
    (r"scipy\.stats\.dirichlet\..*", "beside JAX values: .*nan", "NaN where alpha is not positive; SciPy raises"),
)


class Outcome:
    """The result of a call, as NumPy arrays, or its error."""

    def __init__(self, f: Callable[[], Any]) -> None:
        self.error: Exception | None = None
        self.values: list[Any] = []
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                self.values = leaves(f())
            except TooSlowError:
                raise
            except Exception as error:  # each is judged by its class
                self.error = error

    @property
    def is_foreign(self) -> bool:
        """Whether it ended in an error that no call may end in."""
        error = self.error
        return error is not None and (not isinstance(error, errors.TracerError) or isinstance(error, BUGS))

    @property
    def is_fault(self) -> bool:
        """Whether a call of a valid form ended in such an error, or was taken for one of another form."""
        return self.is_foreign or "not of the expected form" in str(self.error)

    def __str__(self) -> str:
        if self.error is None:
            return " ".join(f"{x.dtype}{list(x.shape)} {x}" for x in self.values)[:300]
        return f"{type(self.error).__name__}: {' '.join(str(self.error).split())}"[:300]


def leaves(tree: Any) -> list[Any]:
    """Return the arrays of a result, in the order of its fields."""
    if tree is None or isinstance(tree, str):
        return []
    if isinstance(tree, dict):
        return [leaf for name in sorted(tree) for leaf in leaves(tree[name])]
    if isinstance(tree, tuple | list):
        return [leaf for part in tree for leaf in leaves(part)]
    if hasattr(tree, "dtype") and "key" in str(tree.dtype):
        tree = (tracer if isinstance(tree, tracer.Array) else jax).random.key_data(tree)
    return [np.asarray(tree)]


def differs(ours: list[Any], theirs: list[Any], tolerances: dict[str, float], *, bits: bool = False) -> str | None:
    """Say how results differ; None where they do not."""
    if len(ours) != len(theirs):
        return f"{len(ours)} results, not {len(theirs)}"
    for got, expected in zip(ours, theirs, strict=True):
        if got.shape != expected.shape:
            return f"shape: {got.shape}, not {expected.shape}"
        kinds = ["f" if str(x.dtype) == "bfloat16" else x.dtype.kind.replace("u", "i") for x in (got, expected)]
        if kinds[0] != kinds[1] or (tolerances is WAYS and got.dtype != expected.dtype):
            return f"dtype: {got.dtype}, not {expected.dtype}"
        if kinds[0] not in "fc":
            same = np.array_equal(got, expected)
        elif bits:
            same = np.array_equal(*(np.where(x != x, 0, x) for x in (got, expected))) and np.array_equal(
                got != got, expected != expected
            )
        else:
            coarse = min(got.dtype, expected.dtype, key=lambda t: (t.itemsize, t.name == "float16"))
            same = near(got, expected, tolerances[coarse.name])
        if not same:
            return f"values: {got.dtype} {np.array_repr(got)}, not {np.array_repr(expected)}"
    return None


def near(got: Any, expected: Any, tolerance: float) -> bool:
    """Whether numbers agree: as NaN, as infinities, and to a tolerance of the largest finite one. Parts apart."""
    if got.dtype.kind == "c":
        if np.isfinite(expected).all() and np.isfinite(got).all():
            scale = np.max(np.abs(expected), initial=1.0)
            return bool(np.all(np.abs(got - expected) <= tolerance * scale))
        return bool(np.array_equal(np.isfinite(got), np.isfinite(expected)))
    with np.errstate(all="ignore"):
        g, e = got.astype(np.float64), expected.astype(np.float64)
        finite = np.isfinite(e)
        scale = max(np.max(np.abs(e[finite]), initial=0.0), 1.0)
        close = (np.abs(g - e) <= tolerance * scale) | (
            np.isnan(e) & (tolerance >= 1e-6)
        )  # libraries have fewer values
        return bool(
            np.all(close | (g == e) | (np.isnan(g) & np.isnan(e)) | (finite & (np.abs(g) > 1e30) & (np.abs(e) > 1e30)))
        )


def total(call: Call, root: Any, active: list[int], numpy: Any) -> Callable[..., Any]:
    """Return a real function of the float arrays of a call: the weighted sum of its float results."""

    def f(*moving: Any) -> Any:
        given = dict(zip(active, moving, strict=True))
        found = call(root, *(given.get(i, x) for i, x in enumerate(call.arrays)))
        parts, sums = [found], numpy.zeros(())
        while parts:
            part = parts.pop()
            if isinstance(part, tuple | list):
                parts += part
            elif hasattr(part, "dtype") and part.dtype.kind in "fcV" and "key" not in str(part.dtype):
                weights = np.cos(np.arange(float(np.prod(part.shape)))).reshape(part.shape).astype(part.real.dtype)
                sums = sums + numpy.sum(part.real * weights)
        return sums

    return f


def gradients(call: Call, root: Any, active: list[int], numpy: Any, *, second: bool = False) -> Callable[..., Any]:
    """Return the gradient of `total`, or the gradient of its squared length."""
    first = root.grad(total(call, root, active, numpy), argnums=tuple(range(len(active))))
    if not second:
        return first  # type: ignore[no-any-return]
    return root.grad(  # type: ignore[no-any-return]
        lambda *moving: sum(numpy.sum(numpy.abs(g) ** 2).astype("float64") for g in first(*moving)),
        argnums=tuple(range(len(active))),
    )


def is_active(x: Any) -> bool:
    return x.dtype.kind in "fc" or x.dtype.name == "bfloat16"


def findings(name: str, seed: int) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the call that a seed gives: a kind, and a text."""
    call = draw(name, seed)
    for kind, text in judged(call, random.Random(f"checks {name} {seed}")):
        if not any(re.fullmatch(n, name) and re.match(what, f"{kind}: {text}") for n, what, _ in TOLD):
            yield f"{name} {kind}", f"{text}\n    {call.shown}"


def judged(call: Call, rng: random.Random) -> Iterator[tuple[str, str]]:
    eager = Outcome(lambda: call(tracer, *map(tnp.asarray, call.arrays)))
    if eager.is_fault:
        yield f"eager raises {type(eager.error).__name__}", str(eager)
        return
    yield from beside(call, eager)
    if rng.random() < 0.6:
        yield from compiled(call, eager)
    active = [i for i, x in enumerate(call.arrays) if is_active(x)]
    if eager.error is not None:
        return
    if active and any(map(is_active, eager.values)) and rng.random() < 0.5:
        yield from differentiated(call, active, second=rng.random() < 0.3)
    if call.arrays and rng.random() < 0.3:
        yield from batched(call, eager)


def compiled(call: Call, eager: Outcome) -> Iterator[tuple[str, str]]:
    found = Outcome(lambda: tracer.jit(lambda *xs: call(tracer, *xs))(*map(tnp.asarray, call.arrays)))
    if found.is_fault:
        yield f"jit raises {type(found.error).__name__}", str(found)
    elif found.error is not None:
        if eager.error is None and not isinstance(found.error, UNTRACED) and "concrete" not in str(found.error):
            yield f"jit refuses, {type(found.error).__name__}", str(found)
    elif eager.error is not None:
        if not isinstance(eager.error, OF_VALUES):
            yield f"jit takes it, eager {type(eager.error).__name__}", str(eager)
    else:
        drawn = call.name.startswith("random.") and call.name != "random.orthogonal"  # by LAPACK's QR outside jit
        text = differs(found.values, eager.values, WAYS, bits=call.name in BITWISE or drawn)
        if text:
            yield f"jit has other {text.split(':')[0]}", text


def differentiated(call: Call, active: list[int], *, second: bool) -> Iterator[tuple[str, str]]:
    xs = [tnp.asarray(call.arrays[i]) for i in active]
    word = "second gradient" if second else "gradient"
    f = gradients(call, tracer, active, tnp, second=second)
    eager = Outcome(lambda: f(*xs))
    if eager.is_fault:
        yield f"{word} raises {type(eager.error).__name__}", str(eager)
        return
    found = Outcome(lambda: tracer.jit(f)(*xs))
    if found.is_fault:
        yield f"jit of {word} raises {type(found.error).__name__}", str(found)
    elif (found.error is None) != (eager.error is None) and not isinstance(
        found.error or eager.error, (*UNTRACED, *OF_VALUES)
    ):
        yield f"jit of {word} and eager do not both raise", f"{found} {eager}"
    elif eager.error is None and found.error is None and call.smooth:
        text = differs(found.values, eager.values, WAYS)
        if text:
            yield f"jit of {word} has other {text.split(':')[0]}", text
        elif jax is not None and all(call.arrays[i].dtype == np.float64 for i in active):
            theirs = Outcome(
                lambda: gradients(call, jax_root(), active, jax.numpy, second=second)(
                    *(jax.numpy.asarray(call.arrays[i]) for i in active)
                )
            )
            text = None if theirs.error else differs(eager.values, theirs.values, LIBRARIES)
            if text and not is_slope(call, active, eager.values, second=second):
                yield f"{word} beside JAX has other {text.split(':')[0]}", text


def is_slope(call: Call, active: list[int], found: list[Any], *, second: bool) -> bool:
    """Whether a gradient is that of differences of the results in one direction, or these are not finite."""
    f, xs = total(call, tracer, active, tnp), [call.arrays[i] for i in active]
    if second:
        first = gradients(call, tracer, active, tnp)
        f = lambda *moving: sum(tnp.sum(tnp.abs(g) ** 2) for g in first(*moving))  # noqa: E731
    ways = [np.cos(np.arange(float(x.size)) + 1).reshape(x.shape) * 1e-5 for x in xs]
    ends = [float(f(*(tnp.asarray(x + sign * way) for x, way in zip(xs, ways, strict=True)))) for sign in (1, -1)]
    slope = sum(float(np.sum(g * way)) for g, way in zip(found, ways, strict=True))
    return not np.isfinite(ends).all() or abs(ends[0] - ends[1] - 2 * slope) <= 1e-8 * max(abs(slope) * 1e5, 1.0)


def batched(call: Call, eager: Outcome) -> Iterator[tuple[str, str]]:
    """Lanes: the arrays, and the arrays with their elements in the other order."""
    turned = [np.array(x.reshape(-1)[::-1].reshape(x.shape)) for x in call.arrays]
    other = Outcome(lambda: call(tracer, *map(tnp.asarray, turned)))
    if other.is_fault:
        yield f"eager raises {type(other.error).__name__}", f"{other} of {turned}"
    if other.error is not None:
        return
    stacked = [tnp.asarray(np.stack(pair)) for pair in zip(call.arrays, turned, strict=True)]
    found = Outcome(lambda: tracer.vmap(lambda *xs: call(tracer, *xs))(*stacked))
    if found.is_fault:
        yield f"vmap raises {type(found.error).__name__}", str(found)
    elif found.error is not None:
        if not isinstance(found.error, UNTRACED) and "concrete" not in str(found.error):
            yield f"vmap refuses, {type(found.error).__name__}", str(found)
    elif all(x.shape == y.shape for x, y in zip(eager.values, other.values, strict=True)):
        expected = [np.stack(pair) for pair in zip(eager.values, other.values, strict=True)]
        text = differs(found.values, expected, WAYS)
        if text:
            yield f"vmap has other {text.split(':')[0]}", text


@cache
def jax_root() -> Any:
    """JAX with 64 bits, and its modules that have to be imported by name."""
    from importlib import import_module

    jax.config.update("jax_enable_x64", True)
    for room in (
        "scipy.special",
        "scipy.linalg",
        "scipy.signal",
        "scipy.stats",
        "scipy.ndimage",
        "scipy.integrate",
        "lax.linalg",
    ):
        import_module(f"jax.{room}")
    return jax


def beside(call: Call, ours: Outcome) -> Iterator[tuple[str, str]]:
    """Compare the call by JAX, by SciPy where its name is SciPy's, or by `REFERENCES`; wrong if all differ."""
    if call.name.startswith("numpy.") and call.name.count(".") == 1:
        return  # tests.numpy.hunt compares these with NumPy
    sizes = [np.abs(x.astype(complex)) for x in call.arrays if is_active(x)]
    if re.match(MIXING, call.name) and not all(np.isfinite(x).all() for x in sizes):
        return  # infinities meet other terms in an order of each library
    if any(((x > 0) & (x < 1e-37)).any() for x in sizes):
        return  # XLA takes subnormal numbers for zeros
    texts: list[tuple[str, str]] = []
    before: Outcome | None = None
    for other, run in others(call):
        theirs = Outcome(run)
        if theirs.error is not None:
            continue
        if ours.error is not None:
            text = None if isinstance(ours.error, OF_VALUES) else f"here {type(ours.error).__name__}: {ours}"
        else:
            text = differs(ours.values, theirs.values, LIBRARIES)
            if text is None and other == "NumPy":  # a meaning has no fewer values
                nans = [[np.isnan(x.astype(complex)) for x in each.values] for each in (ours, theirs)]
                text = None if all(map(np.array_equal, *nans)) else f"values: {ours}, not {theirs}"
        # libraries take poles of functions of numbers in different ways: each element is that of one of them
        if text and before is not None and call.name.startswith("scipy.special."):
            text = differs(ours.values, _chosen(ours.values, before.values, theirs.values), LIBRARIES)
        if text is None:
            return
        before = theirs
        texts.append((f"beside {other} {text.split(':')[0]}", text))
        if other == "NumPy":  # the meaning itself: no library's NaN excuses another value
            break
    yield from texts[:1]


def _chosen(ours: list[Any], first: list[Any], second: list[Any]) -> list[Any]:
    """Return, for each element, the second library's where it is ours, else the first's."""
    if not all(x.shape == y.shape == z.shape for x, y, z in zip(ours, first, second, strict=False)):
        return first
    close = [np.isclose(x, z, rtol=1e-6, equal_nan=True) for x, z in zip(ours, second, strict=False)]
    return [np.where(near, z, y) for near, y, z in zip(close, first, second, strict=False)]


def others(call: Call) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Who else has the function of a call."""
    if call.method is None and call.name in REFERENCES:
        args, options = filled((call.args, call.options), tracer, call.arrays)
        yield "NumPy", lambda: REFERENCES[call.name](*args, **options)
    if jax is not None:
        yield "JAX", lambda: call(jax_root(), *map(jax.numpy.asarray, call.arrays))
    if call.name.startswith(("scipy.special.", "scipy.stats.", "scipy.linalg.", "scipy.signal.")):
        yield "SciPy", lambda: call(SCIPY, *map(_widened, call.arrays))


SCIPY = SimpleNamespace(scipy=scipy)


def _widened(x: Any) -> Any:
    """Return narrow floats in f32, as `tracer.scipy` computes them."""
    return x.astype(np.float32) if x.dtype.name in ("bfloat16", "float16") else x


def _segments(start: float, at: Callable[..., None]) -> Callable[..., Any]:
    """Return what JAX's functions of segments give: ids out of range, negative ones too, count for nothing."""

    def segments(data: Any, segment_ids: Any, num_segments: int, mode: str = "drop") -> Any:
        if data.dtype.kind not in ("f" if np.isinf(start) else "fciu"):
            raise NotImplementedError
        ids = np.clip(segment_ids, 0, max(num_segments - 1, 0)) if mode == "clip" else segment_ids
        inside = (ids >= 0) & (ids < num_segments)
        result = np.full((num_segments, *data.shape[1:]), start, data.dtype)
        at(result, ids[inside].astype(np.int64), data[inside])
        return result

    return segments


def _softmax(x: Any, axis: Any = -1) -> Any:
    if x.dtype.kind != "f" or not x.ndim:
        raise NotImplementedError
    powers = np.exp(x - np.max(x, axis=axis, keepdims=True, initial=-np.inf))
    return (powers / np.sum(powers, axis=axis, keepdims=True)).astype(x.dtype)


def _windows(
    x: Any, start: Any, join: Any, window: Any, strides: Any, padding: str,
    base_dilation: Any = None, window_dilation: Any = None,
) -> Any:  # fmt: skip
    """Return the joined elements of windows; "SAME" pads as if nothing lay between the elements, as XLA does."""
    base, spread = base_dilation or (1,) * x.ndim, window_dilation or (1,) * x.ndim
    if padding != "SAME" or x.dtype.kind not in "fciu":
        raise NotImplementedError
    reach = [(w - 1) * d + 1 for w, d in zip(window, spread, strict=True)]
    missing = [max((-(-n // s) - 1) * s + r - n, 0) for n, s, r in zip(x.shape, strides, reach, strict=True)]
    whole = np.full([max((n - 1) * b + 1, 0) for n, b in zip(x.shape, base, strict=True)], start)
    whole[tuple(slice(None, None, b) for b in base)] = x
    whole = np.pad(whole, [(m // 2, m - m // 2) for m in missing], constant_values=start)
    counts = [max((n - r) // s + 1, 0) for n, r, s in zip(whole.shape, reach, strides, strict=True)]
    result = np.zeros(counts, x.dtype)
    for place in np.ndindex(*counts):
        reached = tuple(slice(i * s, i * s + r, d) for i, s, r, d in zip(place, strides, reach, spread, strict=True))
        result[place] = _JOINS[join.__name__].reduce(whole[reached], axis=None)
    return result


_JOINS: dict[str, Any] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
# Meanings in NumPy, which decide where they have a result.
REFERENCES: dict[str, Callable[..., Any]] = {
    "ops.segment_sum": _segments(0, np.add.at), "ops.segment_prod": _segments(1, np.multiply.at),
    "ops.segment_max": _segments(-np.inf, np.maximum.at), "ops.segment_min": _segments(np.inf, np.minimum.at),
    "nn.softmax": _softmax, "lax.reduce_window": _windows,
}  # fmt: skip
