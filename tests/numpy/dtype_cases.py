"""Calls whose result dtypes are compared with JAX's, written once for both namespaces.

`tools/numpy_dtype_table.py` stores what JAX with 64 bits gives, in `dtypes.json`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
    "float64", "complex64", "complex128",
)  # fmt: skip

UNARY = (
    "abs", "angle", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "argmax", "argmin", "argsort",
    "bitwise_not", "cbrt", "ceil", "conj", "cos", "cosh", "count_nonzero", "cumprod", "cumsum", "deg2rad", "diff",
    "exp", "exp2", "expm1", "fabs", "floor", "imag", "isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2",
    "logical_not", "max", "mean", "median", "min", "nan_to_num", "nanmax", "nanmean", "nansum", "negative", "positive",
    "prod", "ptp", "ravel", "real", "reciprocal", "rint", "round", "sign", "signbit", "sin", "sinc", "sinh", "sort",
    "sqrt", "square", "std", "sum", "tan", "tanh", "trunc", "var", "all", "any", "zeros_like", "ones_like", "diag",
    "tril", "bincount", "nonzero", "modf", "rad2deg", "nanargmax", "sort_complex", "unwrap",
)  # fmt: skip

BINARY = (
    "add", "arctan2", "bitwise_and", "copysign", "divide", "dot", "equal", "float_power", "floor_divide", "fmax",
    "fmod", "heaviside", "hypot", "less", "left_shift",
    "logaddexp", "logical_and", "matmul", "maximum", "minimum", "mod",
    "multiply", "nextafter", "outer", "power", "right_shift", "subtract", "vdot", "where", "concatenate", "kron",
    "cov", "trapezoid", "polydiv",
)  # fmt: skip

DECOMPOSITIONS = (
    "linalg.cond", "linalg.det", "linalg.eig", "linalg.eigh", "linalg.eigvals", "linalg.eigvalsh", "linalg.inv",
    "linalg.norm", "linalg.pinv", "linalg.qr", "linalg.slogdet", "linalg.svd", "linalg.svdvals", "fft.fft", "fft.irfft",
    "fft.ifft2", "fft.rfftn", "fft.hfft",
)  # fmt: skip

SCALARS: dict[str, Any] = {"True": True, "2": 2, "2.0": 2.0, "2j": 2j}
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda x, y: x + y, "*": lambda x, y: x * y, "/": lambda x, y: x / y, "**": lambda x, y: x**y,
    "<": lambda x, y: x < y, "r-": lambda x, y: y - x, "r**": lambda x, y: y**x, "//": lambda x, y: x // y,
}  # fmt: skip


def cases(jnp: Any) -> dict[str, Callable[[], Any]]:
    """Every call by its name."""
    found: dict[str, Callable[[], Any]] = {}
    for dtype in DTYPES:
        x = jnp.ones(2, dtype)
        if not dtype.startswith(("float16", "bfloat16", "complex")):
            for name in DECOMPOSITIONS:
                found[f"{name} {dtype}"] = lambda name=name, dtype=dtype: call_member(
                    jnp, name, jnp.eye(2, dtype=dtype)
                )
        for name in UNARY:
            found[f"{name} {dtype}"] = lambda name=name, x=x: getattr(jnp, name)(x)
        for sign, operator in OPERATORS.items():
            for label, scalar in SCALARS.items():
                found[f"{sign} {dtype} {label}"] = lambda f=operator, x=x, s=scalar: f(x, s)
        for other in DTYPES:
            y = jnp.ones(2, other)
            for name in BINARY:
                found[f"{name} {dtype} {other}"] = lambda name=name, x=x, y=y: call_two(jnp, name, x, y)
            if not any(kind in dtype + other for kind in ("complex", "bfloat16")):
                values = jnp.ones(2, "float32")
                found[f"interp {dtype} {other}"] = lambda x=x, y=y, values=values: jnp.interp(x, y, values)
    return found


def call_member(jnp: Any, name: str, x: Any) -> Any:
    module, member = name.split(".")
    return getattr(getattr(jnp, module), member)(x)


def call_two(jnp: Any, name: str, x: Any, y: Any) -> Any:
    if name == "where":
        return jnp.where(jnp.ones(2, "bool"), x, y)
    return jnp.concatenate([x, y]) if name == "concatenate" else getattr(jnp, name)(x, y)


def described(call: Callable[[], Any], errors: tuple[type[Exception], ...] = (Exception,)) -> str:
    """The dtype of the result, with a star if it is weak, or that there is none. On bool, weakness means nothing."""
    try:
        result = call()
    except errors:
        return "error"
    first = result[0] if isinstance(result, tuple) else result
    return f"{first.dtype}{'*' if first.weak_type and first.dtype != bool else ''}"
