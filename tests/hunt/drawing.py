"""Random calls of public functions: arguments by the names of parameters, or by recipes where they must fit.

A call is a function of a namespace, `tracer` or `jax`, and of its arrays. Sizes are 0 to 4, and of one call they agree
as far as its recipe knows. `smooth` calls have distinct numbers at which derivatives exist; others have ties, and
special ones infinities, NaN, signed zeros, subnormal and huge numbers, and ids out of range.
"""

from __future__ import annotations

import functools
import inspect
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import ml_dtypes
import numpy as np

import tracer
from tests.hunt import rooms
from tests.lax.call_cases import CASES
from tests.numpy import hunt as numpy_calls
from tests.primitives.structural_cases import REDUCTIONS, SHAPES
from tracer.trace.tracebacks import public_names

SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-310, 1e-40, 1e30, -1e300, 0.5, 171.0)
REALS: tuple[Any, ...] = ("float64", "float64", "float64", "float32", "float32", "float16", ml_dtypes.bfloat16)
FLOATS, OTHERS = (*REALS, "complex64", "complex128"), ("bool", "int8", "int32", "int64", "uint8", "uint32", "uint64")


@dataclass(frozen=True)
class Call:
    """A call of the function `name`: arrays stand in `args` and `options` where they are passed.

    method: a function of the namespace and the arrays in place of `name`, args and options.
    """

    name: str
    arrays: tuple[Any, ...]
    args: Any = ()
    options: Any = None
    smooth: bool = False
    method: Callable[..., Any] | None = None

    @property
    def shown(self) -> str:
        said = f"{self.name}{self.args if self.method is None else '...'} {self.options or ''} of {self.arrays}"
        return re.sub(r"<function (?:\S*\.)?(\S+) at 0x\w+>", r"\1", said)

    def __call__(self, root: Any, *arrays: Any) -> Any:
        if self.method is not None:
            return self.method(root, *arrays)
        found = filled((self.args, self.options or {}), root, arrays)
        function = attrgetter(self.name)(root)
        if self.name.startswith("nn.initializers.") and "key" not in signature(self.name):
            options = dict(found[1])
            rest = [options.pop("key"), options.pop("shape")]
            return function(*found[0], **options)(*rest)
        return function(*found[0], **found[1])


@dataclass(frozen=True)
class Hole:
    """The place of an array, or of a random key, among arguments."""

    index: int
    key: bool = False

    def __repr__(self) -> str:
        return f"key({self.index})" if self.key else f"arrays[{self.index}]"


def filled(tree: Any, root: Any, arrays: Any) -> Any:
    """Replace holes by arrays and keys."""
    if isinstance(tree, Hole):
        return root.random.key(tree.index) if tree.key else arrays[tree.index]
    if isinstance(tree, dict):
        return {name: filled(value, root, arrays) for name, value in tree.items()}
    if type(tree) in (tuple, list):
        return type(tree)(filled(value, root, arrays) for value in tree)
    return tree(root) if inspect.isfunction(tree) else tree


def emptied(tree: Any, arrays: list[Any]) -> Any:
    """Replace arrays by holes, and collect them."""
    if isinstance(tree, np.ndarray):
        arrays.append(tree)
        return Hole(len(arrays) - 1)
    if isinstance(tree, dict):
        return {name: emptied(value, arrays) for name, value in tree.items()}
    return type(tree)(emptied(value, arrays) for value in tree) if type(tree) in (tuple, list) else tree


class Draw:
    """A source of arguments that fit each other: a manner, a dtype and a few sizes for a whole call."""

    def __init__(self, rng: random.Random, *, real: bool = False) -> None:
        self.rng, self.manner = rng, rng.choice(("smooth", "smooth", "lattice", "special"))
        chosen = FLOATS if self.manner == "smooth" else (*FLOATS, *OTHERS)
        self.dtype = np.dtype(self.pick(*(chosen[: len(REALS)] if real else chosen)))
        self.shape: tuple[int, ...] = self.shape_of(rng.choice((0, 1, 1, 2, 2, 3)))
        self.first: Any = None

    def pick(self, *values: Any) -> Any:
        return self.rng.choice(values)

    def flip(self, chance: float = 0.5) -> bool:
        return self.rng.random() < chance

    def size(self) -> int:
        return int(self.pick(0, 1, 1, 2, 2, 3, 3, 3, 4, 4))

    def shape_of(self, rank: int) -> tuple[int, ...]:
        return tuple(self.size() for _ in range(rank))

    def array(self, shape: tuple[int, ...] | None = None, dtype: Any = None) -> Any:
        """Numbers of the call's manner, by default of its shape and dtype."""
        shape, dtype = self.shape if shape is None else shape, self.dtype if dtype is None else np.dtype(dtype)
        count, kind = int(np.prod(shape)), dtype.kind if dtype.name != "bfloat16" else "f"
        wide = np.complex128 if kind == "c" else np.float64
        with np.errstate(all="ignore"):
            return np.array([self.number(kind) for _ in range(count)], wide).reshape(shape).astype(dtype)

    def number(self, kind: str) -> Any:
        if kind in "bu":
            return self.rng.randint(0, 5 if kind == "u" else 1)
        if kind == "i":
            return self.rng.randint(-4, 6)
        if kind == "c":
            return complex(self.number("f"), self.number("f"))
        if self.manner == "smooth":
            return round(self.rng.gauss(0.3, 1.0), 4)
        if self.manner == "special" and self.flip(0.3):
            return self.pick(*SPECIAL)
        return self.rng.randint(-4, 6) / self.pick(1, 1, 4)

    def positive(self, shape: tuple[int, ...] | None = None) -> Any:
        x = self.array(shape)
        return np.abs(x) if self.flip(0.85) else x

    def like(self) -> Any:
        """Return an array that joins the first one: most of its shape and dtype, some broadcast to it."""
        x, chance = self.first, self.rng.random()
        if x is None or chance < 0.04:
            return self.array(self.shape_of(self.rng.randint(0, 3)) if x is not None else None)
        if chance < 0.8:
            return self.array(x.shape, x.dtype)
        if chance < 0.9:
            return self.array((), x.dtype)
        return self.array(tuple(1 if self.flip() else n for n in x.shape)[self.rng.randint(0, x.ndim) :], x.dtype)

    def vector(self) -> Any:
        return self.array((self.size(),)) if self.flip(0.9) else self.like()

    def count(self) -> Any:
        """Return a whole number in floats, as discrete distributions take them."""
        with np.errstate(all="ignore"):
            return np.round(self.like().astype(float)).astype(self.dtype)

    def chance(self) -> Any:
        return (self.array().astype(float) % 1.0).astype(self.dtype) if self.flip(0.8) else self.like()

    def axis(self) -> Any:
        rank = self.first.ndim if isinstance(self.first, np.ndarray) else len(self.shape)
        return self.rng.randrange(-rank, rank) if rank and self.flip(0.97) else 2 if rank else 0

    def axes(self) -> tuple[int, ...]:
        rank = self.first.ndim if isinstance(self.first, np.ndarray) else len(self.shape)
        return tuple(sorted(self.rng.sample(range(rank), self.rng.randint(0, rank))))

    def indices(self, shape: tuple[int, ...], limit: int, beyond: float = 0.0) -> Any:
        """Return indices into so many elements, with a chance of some that are out of range."""
        low, high = (-1, limit) if self.flip(beyond) else (0, max(limit - 1, 0))
        count = int(np.prod(shape))
        kind = self.pick("int32", "int64", "uint8") if low >= 0 else self.pick("int32", "int64")
        values = [self.pick(self.rng.randint(low, high), *((-3, 9) if low < 0 else ())) for _ in range(count)]
        return np.array(values, kind).reshape(shape)

    def matrix(self) -> Any:
        """Return a square matrix, now and then a stack of them, a symmetric one or a wide one."""
        n = self.pick(0, 1, 2, 3, 3, 4)
        shape = (*self.pick((), (), (2,), (0,), (1,)), n if self.flip(0.85) else self.size(), n)
        x = self.array(shape)
        if shape[-1] == shape[-2] and self.flip() and x.dtype.kind != "b":
            with np.errstate(all="ignore"):
                x = (x + np.conj(np.swapaxes(x, -1, -2)) + 8 * np.eye(n)).astype(x.dtype)
        return x


Recipe = Callable[[Draw], tuple[tuple[Any, ...], dict[str, Any]]]


def _convolution(d: Draw) -> tuple[tuple[Any, ...], dict[str, Any]]:
    rank, groups = d.pick(1, 1, 2), d.pick(1, 1, 1, 2)
    features, window = d.pick(0, 1, 2) * groups, tuple(d.pick(0, 1, 2, 3) for _ in range(rank))
    lhs = d.array((d.pick(0, 1, 2), features, *(d.pick(0, 1, 3, 5) for _ in range(rank))))
    rhs = d.array((d.pick(0, 1, 2) * groups, features // groups, *window))
    padding = d.pick("SAME", "VALID", [(d.pick(0, 1), d.pick(-1, 0, 2)) for _ in range(rank)])
    options: dict[str, Any] = {"feature_group_count": groups}
    for name in ("lhs_dilation", "rhs_dilation"):
        if d.flip(0.3) and not (name == "lhs_dilation" and isinstance(padding, str)):
            options[name] = tuple(d.pick(1, 2) for _ in range(rank))
    return (lhs, rhs, tuple(d.pick(1, 1, 2) for _ in range(rank)), padding), options


def _conv_transpose(d: Draw) -> tuple[tuple[Any, ...], dict[str, Any]]:
    lhs, rhs = d.array((d.pick(0, 1), d.pick(1, 3, 4), 2)), d.array((d.pick(1, 2, 3), 2, d.pick(0, 1, 2)))
    return (lhs, rhs, (d.pick(1, 2, 3),), d.pick("SAME", "VALID", [(1, 0)])), {}


def _windows(d: Draw) -> tuple[tuple[Any, ...], dict[str, Any]]:
    x = d.array(d.shape_of(d.pick(1, 1, 2)))
    start, name = d.pick((0, "add"), (-np.inf, "max"), (np.inf, "min"), (1, "mul"))
    if x.dtype.kind not in "fV" and not np.isfinite(start):
        start, name = 0, "add"
    sizes = [tuple(d.pick(1, 2, 2, 3) for _ in x.shape) for _ in range(4)]
    given = {"base_dilation": sizes[2], "window_dilation": sizes[3]}
    options = {key: value for key, value in given.items() if d.flip(0.5)}
    return (
        x,
        x.dtype.type(start),
        lambda root: getattr(root.lax, name),
        sizes[0],
        sizes[1],
        d.pick("SAME", "VALID"),
    ), options


def _gather(d: Draw) -> tuple[tuple[Any, ...], dict[str, Any]]:
    x = d.array((d.pick(0, 1, 3), d.pick(0, 1, 2)))
    mode, width = d.pick("clip", "fill", "promise_in_bounds"), d.pick(x.shape[1], x.shape[1], 1)
    places = d.indices((d.size(), 1), x.shape[0], 0.0 if mode == "promise_in_bounds" else 0.5)
    numbers = lambda root: root.lax.GatherDimensionNumbers((1,), (0,), (0,))  # noqa: E731
    return (x, places, numbers, (1, width)), {"mode": mode}


def _scatter(d: Draw) -> tuple[tuple[Any, ...], dict[str, Any]]:
    x = d.array((d.pick(0, 1, 3), d.pick(0, 1, 2)))
    places = d.indices((d.size(), 1), x.shape[0], 0.5)
    updates = d.array((places.shape[0], x.shape[1]))
    numbers = lambda root: root.lax.ScatterDimensionNumbers((1,), (0,), (0,))  # noqa: E731
    return (x, places, updates, numbers), {"mode": d.pick("clip", "drop")}


def _segments(d: Draw) -> tuple[tuple[Any, ...], dict[str, Any]]:
    x, count = d.array((d.size(), *d.pick((), (), (2,), (0,)))), d.pick(0, 1, 3, 3, 5)
    ids = d.indices(x.shape[:1], count, 0.5)
    return (x, ids), {"num_segments": count, **({"mode": d.pick("clip", "drop")} if d.flip(0.2) else {})}


def _product(d: Draw) -> tuple[tuple[Any, ...], dict[str, Any]]:
    b, m, n, k = (d.size() for _ in range(4))
    if d.flip():
        return (d.array((m, k)), d.array((n, k)), (((1,), (1,)), ((), ()))), {}
    return (d.array((b, m, k)), d.array((k, b, n)), (((2,), (0,)), ((0,), (1,)))), {}


def _pad(d: Draw) -> tuple[tuple[Any, ...], dict[str, Any]]:
    x = d.array()
    return (x, d.array((), x.dtype), [(d.pick(-1, 0, 2), d.pick(-1, 0, 1), d.pick(0, 0, 2)) for _ in x.shape]), {}


def _slice(d: Draw) -> tuple[tuple[Any, ...], dict[str, Any]]:
    x = d.array()
    starts = tuple(d.rng.randint(0, n) for n in x.shape)
    limits = tuple(d.rng.randint(a, n) for a, n in zip(starts, x.shape, strict=True))
    return (x, starts, limits, tuple(d.pick(1, 2) for _ in x.shape)), {}


def _dynamic(d: Draw) -> tuple[tuple[Any, ...], dict[str, Any]]:
    x = d.array()
    starts = [np.array(d.rng.randint(-2, 4), "int32") for _ in x.shape]
    return (x, starts, tuple(d.rng.randint(0, n) for n in x.shape)), {}


def _dynamic_update(d: Draw) -> tuple[tuple[Any, ...], dict[str, Any]]:
    x, starts, sizes = _dynamic(d)[0]
    return (x, d.array(sizes, x.dtype), starts), {}


def _attention(d: Draw) -> tuple[tuple[Any, ...], dict[str, Any]]:
    b, t, s, n, h = (d.pick(0, 1, 2, 3) for _ in range(5))
    options: dict[str, Any] = {"is_causal": d.flip(0.3)}
    if d.flip(0.3):
        options["mask"] = d.array((b, n, t, s), "bool")
    return (d.array((b, t, n, h)), d.array((b, s, n, h)), d.array((b, s, n, h))), options


def _triangular(d: Draw) -> tuple[tuple[Any, ...], dict[str, Any]]:
    n, stack, left = d.pick(0, 1, 3), d.pick((), (2,), (0,)), d.flip()
    a = (d.array((*stack, n, n)) + 4 * np.eye(n)).astype(d.dtype)
    flags = {name: d.flip() for name in ("lower", "transpose_a", "unit_diagonal")}
    return (a, d.array((*stack, n, 2) if left else (*stack, 2, n))), {"left_side": left, **flags}


def _broadcast(d: Draw) -> tuple[tuple[Any, ...], dict[str, Any]]:
    x = d.array(d.shape_of(d.pick(0, 1, 2)))
    shape = [d.size() if d.flip(0.2) or n == 1 else n for n in x.shape]
    places = sorted(d.rng.sample(range(len(shape) + 1), len(shape)))
    full = [d.size() for _ in range(len(shape) + 1)]
    for place, n in zip(places, shape, strict=True):
        full[place] = n
    return (x, tuple(full), tuple(places)), {}


def _coordinates(d: Draw) -> tuple[tuple[Any, ...], dict[str, Any]]:
    x = d.array(d.shape_of(d.pick(1, 2)))
    points = [d.array((3,), "float64") for _ in x.shape]
    return (x, points, d.pick(0, 1)), {"mode": d.pick("constant", "nearest", "wrap", "mirror", "reflect")}


def _same(count: int) -> Recipe:
    """Arrays of one shape and dtype, as most functions of lax take them."""
    return lambda d: (tuple(d.array() for _ in range(count)), {})


def _lists(d: Draw) -> tuple[tuple[Any, ...], dict[str, Any]]:
    rank, axis = max(len(d.shape), 1), d.rng.randrange(max(len(d.shape), 1))
    base = d.shape or (2,)
    arrays = [d.array((*base[:axis], d.size(), *base[axis + 1 :])) for _ in range(d.pick(1, 2, 3))]
    return (arrays, axis % rank), {}


def _reshape(d: Draw) -> tuple[tuple[Any, ...], dict[str, Any]]:
    x = d.array()
    return (x, d.pick((x.size,), (1, x.size), x.shape[::-1])), {}


def _transpose(d: Draw) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return (d.array(), tuple(d.rng.sample(range(len(d.shape)), len(d.shape)))), {}


RECIPES: dict[str, Recipe] = {
    "lax.conv_general_dilated": _convolution, "lax.conv_transpose": _conv_transpose, "lax.reduce_window": _windows,
    "lax.gather": _gather, "lax.dot_general": _product, "lax.pad": _pad, "lax.slice": _slice,
    **{f"lax.{name}": _scatter for name in ("scatter", "scatter_add", "scatter_max", "scatter_min", "scatter_mul")},
    **{f"ops.segment_{name}": _segments for name in ("sum", "prod", "max", "min")},
    "lax.dynamic_slice": _dynamic, "lax.dynamic_update_slice": _dynamic_update, "lax.broadcast_in_dim": _broadcast,
    "nn.dot_product_attention": _attention, "lax.linalg.triangular_solve": _triangular, "lax.reshape": _reshape,
    "scipy.ndimage.map_coordinates": _coordinates, "lax.concatenate": _lists, "lax.transpose": _transpose,
    "lax.clamp": _same(3), "lax.fma": _same(3), "lax.sort_key_val": _same(2), "lax.select":
    lambda d: ((d.array(dtype="bool"), d.array(), d.array()), {}),
    "lax.select_n": lambda d: ((d.array(dtype="bool"), d.array(), d.array()), {}),
}  # fmt: skip

Parameter = Callable[[Draw], Any]


def one_of(*values: Any) -> Parameter:
    return lambda d: d.pick(*values)


_FLAGS = (
    "calc_q compute_uv compute_schur_vectors decreasing eigvals_only full full_matrices hermitian independent keepdims "
    "lower permute_l pivoting repetition replace return_sign reverse symmetrize_input symmetrize_output "
    "unit_diagonal upper upper_triangular"
)
_ARRAYS = (
    "a alpha arr array b bins c concentration cov data d1 dl du d data delta df dfd dfden dfn dfnum e f in1 in2 k k_ "
    "kappa lam left lhs like_arr lmbda loc logits mean mode_ m_ minval maxval n_ operand p q query r rhs right s "
    "sample scale sigma t v value x x1 x2 y z w_vector c_matrix"
)
# By module where a name means something else in it: "module:parameter".
PARAMETERS: dict[str, Parameter] = {
    **dict.fromkeys(_ARRAYS.split(), Draw.like),
    **dict.fromkeys(_FLAGS.split(), one_of(True, False)),
    **dict.fromkeys(("axis", "dimension", "reduction_dimension", "split_axis", "dim"), Draw.axis),
    **dict.fromkeys(("axes", "dimensions"), Draw.axes),
    **dict.fromkeys(("n", "N", "num", "deg"), one_of(0, 1, 2, 3, 5)),
    "key": lambda d: Hole(d.rng.randrange(2**31), key=True), "shape": lambda d: d.shape, "rank": one_of(0, 2, 4),
    "dtype": one_of("float32", "float64", "int32", "complex64"),
    "new_dtype": one_of("float32", "int8", "bool", "float16"),
    "where": lambda d: d.array(d.first.shape if d.first is not None else None, "bool"), "permutation": Draw.axes,
    "num_classes": one_of(0, 1, 4), "exponent_bits": one_of(5, 8), "mantissa_bits": one_of(0, 3, 10),
    "ddof": one_of(0, 1, 2), "offset": one_of(-1, 0, 2), "norm": one_of("ortho", "forward", "backward"),
    "sizes": lambda d: d.shape_of(d.pick(0, 1, 2)), "reps": lambda d: d.shape_of(len(d.shape)),
    "fill_value": one_of(0, 1.5),
    "lax:k": one_of(0, 1, 2, 9), "lax:m": one_of(0, 1, 3), "lax.integer_pow:y": one_of(-2, 0, 1, 3),
    "size": one_of(0, 1, 4), "index": lambda d: d.rng.randint(-1, 2), "start_index": one_of(0, 1),
    "slice_size": one_of(0, 1),
    "limit_index": one_of(0, 1, 2, -1), "negative_slope": one_of(0.0, 0.3), "approximate": one_of(True, False),
    "scipy.special:n": lambda d: d.indices(d.shape, 4), "scipy.special.bernoulli:n": one_of(0, 1, 5),
    "scipy.special:m": Draw.like, "scipy.special.multigammaln:d": one_of(1, 3), "scipy.special:N": Draw.like,
    "scipy.signal:mode": one_of("full", "same", "valid"), "method": one_of("auto", "direct", "fft"),
    "scipy.linalg:mode": one_of("full", "r", "economic", "same", "valid", "left", "right"),
    "numpy.linalg:mode": one_of("reduced", "r", "complete"),
    "scipy.signal:method": one_of("auto", "direct", "fft"), "scipy.signal:type": one_of("linear", "constant"),
    "trans": one_of(0, 1, 2),
    "scipy.stats:method": one_of("average", "min", "max", "dense", "ordinal"), "side": one_of("left", "right"),
    "nan_policy": one_of("propagate", "omit"), "order": one_of(0, 1), "output": one_of("real", "complex"),
    "in_axis": one_of(-2, 0), "out_axis": one_of(-1, 0),
    "distribution": one_of("normal", "uniform", "truncated_normal"),
    "nn.initializers:mode": one_of("fan_in", "fan_out", "fan_avg"), "nn.initializers:scale": one_of(1.0, 0.3, 0),
    "nn.initializers:value": one_of(0, 2.5), "nn.initializers:lower": one_of(-2.0), "random:lower": Draw.like,
    "random:upper": Draw.like,
    "nn.initializers:shape": lambda d: d.shape_of(d.pick(2, 2, 3, 4, 1)), "random:n": Draw.positive,
    "random:mode": Draw.like,
    "random.orthogonal:n": one_of(0, 1, 3), "random.ball:d": one_of(0, 1, 3), "random:data": one_of(0, 1, 2**32 - 1),
    "random:seed": one_of(0, 5, 2**40),
    "random:shape": lambda d: d.pick(d.shape, d.shape, (), (0,), (2, 3)), "random:minval": one_of(0, -3),
    "random:maxval": one_of(1, 9, 0),
    **{f"random:{name}": Draw.positive for name in ("a", "alpha", "b", "df", "lam", "scale", "concentration")},
    **{f"scipy.stats:{name}": Draw.positive for name in ("scale", "a", "b", "df", "n", "kappa", "alpha", "mu", "c")},
    "scipy.stats:beta": Draw.positive,
    **{
        f"{room}:{name}": Draw.matrix for room in ("scipy.linalg", "numpy.linalg", "lax.linalg")
        for name in ("a", "A", "x", "a_matrix", "r_matrix", "E")
    },
    **{f"scipy.linalg.{name}": Draw.vector for name in (
        "circulant:c", "companion:a", "convolution_matrix:a", "fiedler:a", "fiedler_companion:a", "hankel:c",
    "hankel:r",
        "leslie:f", "leslie:s", "toeplitz:c", "toeplitz:r", "eigh_tridiagonal:d", "eigh_tridiagonal:e")},
    "scipy.stats:k": Draw.count, "scipy.stats:p": Draw.chance, "random:p": Draw.chance, "scipy.stats:q": Draw.chance,
    "scipy.special.polygamma:n": one_of(0, 1, 3),
    **{f"numpy.linalg:{name}": Draw.like for name in ("x1", "x2", "b")}, "numpy.linalg:n": one_of(-2, -1, 0, 1, 2, 3),
    "numpy.linalg:ord": one_of(None, 1, 2, -1, np.inf, "fro", "nuc", 0), "numpy.linalg:axis": one_of(None, -1, (0, 1)),
    "numpy.linalg:axes": one_of(0, 1, 2), "numpy.linalg:arrays": lambda d: [d.array((2, 3)), d.array((3, d.size()))],
    "numpy.linalg:p": one_of(None, 1, 2, "fro"), "UPLO": one_of("L", "U"), "ind": one_of(1, 2),
    "numpy.fft:axes": lambda d: d.pick(None, (-1,), (0,), (-2, -1)), "numpy.fft:s": lambda d: None,
}  # fmt: skip

# Functions of functions, of lanes' names or of types, texts of settings, and memory without numbers.
APART = {
    *[
        "all_gather",
        "all_to_all",
        "axis_index",
        "axis_size",
        "cond",
        "custom_linear_solve",
        "custom_root",
        "empty",
        "fori_loop",
        "map",
        "pbroadcast",
        "platform_dependent",
        "pmax",
        "pmean",
        "pmin",
        "ppermute",
        "pshuffle",
        "psum",
        "psum_scatter",
        "pswapaxes",
        "scan",
        "switch",
        "while_loop",
        "with_sharding_constraint",
        "associative_scan",
        "reduce",
        "broadcast_shapes",
        "dtype",
        "funm",
        "key_impl",
        "clone",
        "rsf2csf",
        "microbatches",
    ]
}
ROOMS = (
    "lax", "lax.linalg", "nn", "nn.initializers", "ops", "random", "scipy.special", "scipy.linalg", "scipy.signal",
    "scipy.stats", "scipy.ndimage", "scipy.integrate", "scipy.fft", "numpy.linalg", "numpy.fft",
)  # fmt: skip


@functools.cache
def signature(name: str) -> dict[str, bool]:
    """Return the parameters of a function, and whether a call needs them."""
    named = inspect.signature(attrgetter(name)(tracer)).parameters.values()
    return {p.name: p.default is p.empty for p in named if p.kind is not p.VAR_KEYWORD}


def parameter(name: str, key: str) -> Parameter | None:
    """Return how a parameter is drawn: by the function, by its room, or by the parameter's name alone."""
    room = name.rpartition(".")[0]
    if room.startswith("scipy.stats."):
        room = "scipy.stats"
    return PARAMETERS.get(f"{name}:{key}", PARAMETERS.get(f"{room}:{key}", PARAMETERS.get(key)))


CASES_BY_NAME = {
    f"case {case.label}": case
    for case in (*CASES, *SHAPES, *REDUCTIONS)
    if not case.label.startswith(("dot ", "conv "))
}


@functools.cache
def names() -> tuple[str, ...]:
    """Return the functions whose needed arguments can be drawn, and the cases of lax."""
    found = []
    for room in ROOMS:
        module = attrgetter(room)(tracer)
        for name, member in [(name, getattr(module, name)) for name in public_names(vars(module))]:
            if inspect.isfunction(member) and name not in APART:
                found.append(f"{room}.{name}")
            elif room == "scipy.stats" and inspect.ismodule(member):
                found += [f"{room}.{name}.{f}" for f in public_names(vars(member))]
    drawn = (name for name in found if name in RECIPES or _is_drawn(name))
    return (*drawn, *(f"numpy.{name}" for name in numpy_calls.callable_names()), *CASES_BY_NAME, *rooms.ROOMS)


def _is_drawn(name: str) -> bool:
    function = attrgetter(name)(tracer)
    if not inspect.isfunction(function):
        return False
    needed = [key for key, is_needed in signature(name).items() if is_needed]
    return (bool(needed) and all(parameter(name, key) for key in needed)) or name.startswith("nn.initializers.")


def draw(name: str, seed: int) -> Call:
    """Return the call of a function, or the variant of a case, that a seed gives."""
    rng, arrays = random.Random(f"{name} {seed}"), list[Any]()
    if name.startswith("case "):
        return _variant(name, rng)
    if name.startswith("room "):
        d = Draw(rng, real=True)
        given, method = rooms.ROOMS[name](d)
        return Call(name, given, method=method, smooth=d.manner == "smooth")
    if name.startswith("numpy.") and name.count(".") == 1:
        args, options = emptied(numpy_calls.draw(name[6:], rng), arrays)
        own = inspect.signature(attrgetter(name)(tracer)).parameters.values()
        theirs = numpy_calls.signature(name[6:])
        ours = [p.name for p in own if isinstance(p.default, bool) and p.name not in theirs]
        options |= {key: True for key in ours if rng.random() < 0.3}
        return Call(name, tuple(x.astype(x.dtype.newbyteorder("=")) for x in arrays), args, options)
    d = Draw(rng, real=name.startswith(("nn.", "random.", "scipy.s", "scipy.n")) and rng.random() < 0.97)
    if name in RECIPES:
        args, options = RECIPES[name](d)
    else:
        args, options = _by_parameters(name, d)
    found = emptied((args, options), arrays)
    return Call(name, tuple(arrays), *found, smooth=d.manner == "smooth")


def _by_parameters(name: str, d: Draw) -> tuple[tuple[Any, ...], dict[str, Any]]:
    options: dict[str, Any] = {}
    for key, is_needed in signature(name).items():
        how = parameter(name, key)
        if how is None or not (is_needed or (d.flip(0.3) and how is not Draw.like)):
            continue
        value = options[key] = how(d)
        if d.first is None and isinstance(value, np.ndarray):
            d.first = value
    if name.startswith("nn.initializers."):
        options |= {"key": Hole(3, key=True), "shape": parameter(name, "shape")(d)}  # type: ignore[misc]
    only = [
        p.name for p in inspect.signature(attrgetter(name)(tracer)).parameters.values() if p.kind is p.POSITIONAL_ONLY
    ]
    return tuple(options.pop(key) for key in only if key in options), options


def _variant(name: str, rng: random.Random) -> Call:
    """Return a case with a size replaced in all of its arrays, or with special elements."""
    case = CASES_BY_NAME[name]
    arrays = [np.array(x) for x in case.operands]
    sizes = sorted({n for x in arrays for n in x.shape})
    if sizes and rng.random() < 0.5:
        old, new = rng.choice(sizes), rng.choice((0, 1))
        arrays = [np.resize(x, tuple(new if n == old else n for n in x.shape)).astype(x.dtype) for x in arrays]
    for x in arrays:
        if x.size and x.dtype.kind in "fc" and rng.random() < 0.5:
            with np.errstate(all="ignore"):
                x.reshape(-1)[rng.randrange(x.size)] = rng.choice(SPECIAL)
    return Call(name, tuple(arrays), method=lambda root, *xs: case.call(root.lax, *xs))


def seeds(first: int) -> Iterator[tuple[str, int]]:
    """All functions in turn, then again with the next seed."""
    every = names()
    while True:
        yield every[first % len(every)], first // len(every)
        first += 1
