"""Calls of lax functions on dtypes at the edge of what they take, written once for `tracer` and for JAX.

Every call takes a namespace `lax`; `tools/lax_calls_table.py` stores what JAX's gives, or that it refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

Call = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """A call on arrays. smooth: whether its gradients are compared with JAX's."""

    label: str
    call: Call
    operands: tuple[Any, ...]
    smooth: bool = True


DTYPES = [
    *map(np.dtype, ("bool", "int8", "int32", "int64", "uint8", "uint32", "float16")), np.dtype(ml_dtypes.bfloat16),
    *map(np.dtype, ("float32", "float64", "complex64", "complex128")),
]  # fmt: skip
INF = np.inf


def small(dtype: np.dtype[Any], *shape: int, seed: int = 0) -> Any:
    """Multiples of a half between -2 and 2 (integers from -3 to 3), whose sums of products are exact."""
    rng = np.random.default_rng(seed)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        return rng.integers(-3 if dtype.kind == "i" else 0, 4, shape).astype(dtype)
    values = rng.integers(-4, 5, shape) / 2
    return (values + 1j * rng.integers(-4, 5, shape) / 2 if dtype.kind == "c" else values).astype(dtype)


# Complex numbers in the order of reductions: by real, then by imaginary part. The real parts repeat.
ORDERED = np.round(np.random.default_rng(5).normal(size=(4, 5))) + 1j * (np.arange(20).reshape(4, 5)[::-1] % 7)
ENDS = np.array([[complex(INF, 1), complex(-INF, 2), complex(1, INF), complex(1, -INF), 0]] * 3)


def _extremes() -> Iterator[Case]:
    for name in ("reduce_max", "reduce_min"):
        for axes in ((0,), (1,), (0, 1), ()):
            yield Case(f"{name} {axes}", lambda lax, x, f=name, a=axes: getattr(lax, f)(x, a), (ORDERED,))
        yield Case(f"{name} infinities", lambda lax, x, f=name: getattr(lax, f)(x, (1,)), (ENDS,), False)
    for name in ("cummax", "cummin", "cumlogsumexp"):
        for axis, reverse in ((0, False), (1, True)):
            yield Case(
                f"{name} {axis} {reverse}",
                lambda lax, x, f=name, a=axis, r=reverse: getattr(lax, f)(x, axis=a, reverse=r),
                (ORDERED + 0.25 * np.arange(5),), name == "cumlogsumexp",
            )  # fmt: skip
    for name, start in (("max", -INF), ("min", INF)):
        for padding in ("VALID", "SAME"):
            yield Case(
                f"reduce_window {name} {padding}",
                lambda lax, x, f=name, s=start, p=padding: lax.reduce_window(
                    x, x.dtype.type(complex(s, s)), getattr(lax, f), (2, 2), (1, 2), p
                ),
                (ORDERED,), False,
            )  # fmt: skip
        yield Case(
            f"reduce_window {name} of a real start",
            lambda lax, x, f=name, s=start: lax.reduce_window(x, x.dtype.type(s), getattr(lax, f), (2, 2), (1, 1)),
            (np.concatenate([ENDS, ORDERED]),), False,
        )  # fmt: skip
        yield Case(f"{name} of two", lambda lax, x, f=name: getattr(lax, f)(x, x[::-1]), (ORDERED,))
        yield Case(
            f"scatter_{name}",
            lambda lax, x, u, f=name: getattr(lax, f"scatter_{f}")(
                x, np.array([[1], [2], [1]]), u, lax.ScatterDimensionNumbers((1,), (0,), (0,)), mode="clip"
            ),
            (ORDERED, ORDERED[:3, ::-1].copy()),
        )  # fmt: skip


def _preferred() -> Iterator[Case]:
    for own in DTYPES:
        x, y = small(own, 3, 4, seed=1), small(own, 4, 2, seed=2)
        image, window = small(own, 1, 2, 6, seed=3), small(own, 3, 2, 3, seed=4)
        for wanted in DTYPES:
            smooth = own.kind == "f" and wanted.kind == "f" and 4 <= own.itemsize <= wanted.itemsize
            yield Case(
                f"dot {own}->{wanted}", lambda lax, x, y, d=wanted: lax.dot(x, y, preferred_element_type=d),
                (x, y), smooth,
            )  # fmt: skip
            yield Case(
                f"conv {own}->{wanted}",
                lambda lax, x, y, d=wanted: lax.conv_general_dilated(x, y, (1,), "SAME", preferred_element_type=d),
                (image, window), smooth,
            )  # fmt: skip


# window, strides, padding
POOLS: list[tuple[tuple[int, int], tuple[int, int], tuple[tuple[int, int], tuple[int, int]]]] = [
    ((2, 2), (1, 1), ((0, 0), (0, 0))), ((2, 2), (2, 2), ((0, 0), (0, 0))), ((3, 3), (2, 1), ((1, 1), (1, 1))),
    ((3, 2), (1, 2), ((1, 1), (0, 1))), ((2, 2), (3, 3), ((0, 0), (0, 0))), ((6, 7), (1, 1), ((0, 0), (0, 0))),
]  # fmt: skip


def _pools() -> Iterator[Case]:
    rng = np.random.default_rng(7)
    ties, apart = rng.integers(-4, 5, (6, 7)).astype(float), rng.permutation(42).reshape(6, 7) / 4 - 5
    special = ties.copy()
    special[1, 1], special[4, 4], special[3, 2], special[2, 3], special[0, 0] = INF, -INF, -0.0, np.nan, np.nan
    for turn, (window, strides, padding) in enumerate(POOLS):
        for name, x in (("ties", ties), ("apart", apart.astype(np.float32)), ("integers", ties.astype(np.int32)),
                        ("special", special)):  # fmt: skip
            for order in ("ge", "le", "gt") if name != "special" else ():  # NaN: the first one here, in XLA by turns

                def scattered(
                    lax: Any, x: Any, w: Any = window, s: Any = strides, p: Any = padding, o: str = order
                ) -> Any:
                    places = lax.reduce_window_shape_tuple(x.shape, w, s, p)
                    source = np.arange(1, 1 + np.prod(places)).reshape(places).astype(x.dtype)
                    return lax.select_and_scatter(x, getattr(lax, o), w, s, p, source, np.zeros((), x.dtype), lax.add)

                yield Case(f"select_and_scatter {order} {name} {turn}", scattered, (x,), False)
            for function, start in (("max", -INF), ("min", INF), ("add", 0.0)):
                if name == "integers" and start:
                    continue
                for base in ((1, 1), (1, 2)):
                    yield Case(
                        f"reduce_window {function} {name} {turn} {base}",
                        lambda lax, x, f=function, i=start, w=window, s=strides, p=padding, b=base: lax.reduce_window(
                            x, x.dtype.type(i), getattr(lax, f), w, s, p, base_dilation=b
                        ),
                        (x,), name != "special",
                    )  # fmt: skip
        yield Case(
            f"reduce_window mul {turn}",
            lambda lax, x, w=window, s=strides, p=padding: lax.reduce_window(x, x.dtype.type(1), lax.mul, w, s, p),
            (np.sign(ties + 0.5) * 2.0 ** (ties % 3 - 1),), False,
        )  # fmt: skip


CASES = [*_extremes(), *_preferred(), *_pools()]
