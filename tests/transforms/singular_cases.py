"""Elementwise functions of one variable, and points where they or their derivatives may be singular: as text, since two
libraries read it."""

from __future__ import annotations

POINTS = ("0.0", "-0.0", "1.0", "-1.0", "inf", "-inf", "nan")

NUMPY = [
    "sqrt",
    "cbrt",
    "square",
    "reciprocal",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sin",
    "cos",
    "tan",
    "arcsin",
    "arccos",
    "arctan",
    "sinh",
    "cosh",
    "tanh",
    "arcsinh",
    "arccosh",
    "arctanh",
    "sinc",
    "deg2rad",
    "i0",
]
LAX = ["rsqrt", "logistic", "erf", "erfc", "erf_inv", "lgamma", "digamma", "tan"]
NN = [
    "sigmoid",
    "log_sigmoid",
    "softplus",
    "silu",
    "gelu",
    "elu",
    "selu",
    "celu",
    "mish",
    "squareplus",
    "soft_sign",
    "hard_sigmoid",
]
SPECIAL = [
    "gammaln",
    "digamma",
    "erf",
    "erfc",
    "erfinv",
    "expit",
    "log_ndtr",
    "ndtr",
    "ndtri",
    "entr",
    "logit",
]

# name -> expression of x. jnp, lax, nn and special are JAX's modules, or ours with their names.
FUNCTIONS: dict[str, str] = {
    **{f"jnp.{name}": f"jnp.{name}(x)" for name in NUMPY},
    **{f"lax.{name}": f"lax.{name}(x)" for name in LAX},
    **{f"nn.{name}": f"nn.{name}(x)" for name in NN},
    **{f"special.{name}": f"special.{name}(x)" for name in SPECIAL},
    "x**3": "x ** 3",
    "x**-1": "x ** -1",
    "x**0.5": "x ** 0.5",
    "x**1.5": "x ** 1.5",
    "x**2.5": "x ** 2.5",
    "x**-0.5": "x ** -0.5",
    "2.0**x": "2.0 ** x",
    "0.5**x": "0.5 ** x",
    "logaddexp(x, 1)": "jnp.logaddexp(x, 1.0)",
    "logaddexp2(x, 1)": "jnp.logaddexp2(x, 1.0)",
    "arctan2(x, 1)": "jnp.arctan2(x, 1.0)",
    "arctan2(1, x)": "jnp.arctan2(1.0, x)",
    "hypot(x, 1)": "jnp.hypot(x, 1.0)",
    "xlogy(x, 2)": "special.xlogy(x, 2.0)",
    "xlogy(2, x)": "special.xlogy(2.0, x)",
    "xlog1py(2, x)": "special.xlog1py(2.0, x)",
    "sqrt(1 - x*x)": "jnp.sqrt(1.0 - x * x)",
    "x / (1 + x)": "x / (1.0 + x)",
}

# name -> how a derivative of f is taken, given `grad` and `jvp`, which differentiate element by element
ORDERS: dict[str, str] = {
    "value": "f(x)",
    "jvp": "jvp(f)(x)",
    "grad": "grad(f)(x)",
    "jvp of jvp": "jvp(jvp(f))(x)",
    "grad of jvp": "grad(jvp(f))(x)",
    "jvp of grad": "jvp(grad(f))(x)",
    "grad of grad": "grad(grad(f))(x)",
}
