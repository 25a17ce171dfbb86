"""The rows as a user of PyTorch writes them: eager operations on tensors, gradients by autograd.

`w.np` is `torch`, `w.nn` is `torch.nn.functional`. `torch.compile` is left out: it needs a C++ compiler at run time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from peers import rows_arrays, rows_calls, rows_elementwise, rows_programs, rows_science, rows_transforms
from peers.row import Maker, World


class _PythonLoops:
    """`lax` for those whose loops are Python's."""

    @staticmethod
    def fori_loop(start: int, stop: int, body: Any, state: Any) -> Any:
        for i in range(start, stop):
            state = body(i, state)
        return state


def _named(name: str, **given: Any) -> Maker:
    return lambda w: lambda *xs: getattr(w.np, name)(*xs, **given)


def _special(name: str) -> Maker:
    return lambda w: getattr(w.special, name)


def _gradient(function: Any, *, of: int) -> Any:
    """The gradients of function(w), which gives a number, by its first `of` arguments."""

    def make(w: World) -> Any:
        scalar = function(w)

        def gradient(*xs: Any) -> Any:
            inputs = [x.detach().requires_grad_() for x in xs[:of]]
            found = w.np.autograd.grad(scalar(*inputs, *xs[of:]), inputs)
            return found[0] if of == 1 else found

        return gradient

    return make


def _prices(w: World) -> Any:
    price = rows_elementwise._black_scholes(w)
    return lambda s, k, t: price(s, k, t).sum()


def _layernorm(w: World) -> Any:
    return lambda x, scale, shift: w.nn.layer_norm(x, x.shape[-1:], scale, shift)


def _squares(make: Any) -> Any:
    def squares(w: World) -> Any:
        inner = make(w)
        return lambda *xs: (inner(*xs) ** 2).sum()

    return squares


def _softmax(w: World) -> Any:
    return lambda x: w.np.softmax(x, -1)


def _bias_relu(w: World) -> Any:
    return lambda a, b, c: w.np.relu(w.np.addmm(c, a, b))


def _matmul_bf16(w: World) -> Any:
    return lambda a, b: (a.view(w.np.bfloat16) @ b.view(w.np.bfloat16)).float()


def _moved(w: World) -> Any:
    return lambda x: x.permute(0, 2, 3, 1).contiguous()


def _sampled(name: str, *shape: int) -> Maker:
    def make(w: World) -> Any:
        def sample(seed: Any) -> Any:
            generator = w.np.Generator().manual_seed(int(seed))
            return getattr(w.np, name)(*shape, generator=generator)

        return sample

    return make


def _mandelbrot(w: World) -> Any:
    def mandelbrot(re: Any, im: Any) -> Any:
        x, y, count = re, im, w.np.zeros_like(re, dtype=w.np.int64)
        for _ in range(100):
            square, other = x * x, y * y
            inside = square + other <= 4
            x, y = w.np.where(inside, square - other + re, x), w.np.where(inside, 2 * x * y + im, y)
            count = count + inside
        return count

    return mandelbrot


def _recurrent(w: World) -> Any:
    def run(xs: Any, h: Any, inward: Any, recurrent: Any) -> Any:
        states = []
        for x in xs:
            h = w.np.tanh(x @ inward + h @ recurrent)
            states.append(h)
        return h, w.np.stack(states)

    return run


def _heat(w: World) -> Any:
    def heat(u: Any) -> Any:
        u = u.clone()
        for _ in range(100):
            inner = u[1:-1, 1:-1]
            around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * inner
            u[1:-1, 1:-1] = inner + 0.1 * around
        return u

    return heat


def _forces(w: World) -> Any:
    def forces(p: Any, m: Any) -> Any:
        d = p[None, :, :] - p[:, None, :]
        r2 = (d * d).sum(-1) + 1e-3
        return (d * (m[None, :] / (r2 * w.np.sqrt(r2)))[:, :, None]).sum(1)

    return forces


def _kmeans(w: World) -> Any:
    def assign(x: Any, centres: Any) -> Any:
        nearest = w.np.argmin(w.np.cdist(x, centres), 1)
        sums = w.np.zeros_like(centres).index_add_(0, nearest, x)
        return sums / w.np.bincount(nearest, minlength=len(centres))[:, None]

    return assign


def _descended(w: World, params: Any, loss: Any) -> Any:
    with w.np.no_grad():
        return [p - 0.1 * g for p, g in zip(params, w.np.autograd.grad(loss, params), strict=True)]


def _mlp(w: World) -> Any:
    def step(params: Any, x: Any, y: Any) -> Any:
        params = [p.detach().requires_grad_() for p in params]
        a, b, c, d = params
        loss = w.nn.cross_entropy(w.np.relu(x @ a + b) @ c + d, y)
        return _descended(w, params, loss)

    return step


def _attention(w: World) -> Any:
    return lambda q, k, v: w.nn.scaled_dot_product_attention(q, k, v, scale=1 / 8)


def _convolution(w: World) -> Any:
    return lambda x, kernel: w.nn.conv2d(x, kernel, padding=1)


def _cnn(w: World) -> Any:
    def step(params: Any, x: Any, y: Any) -> Any:
        params = [p.detach().requires_grad_() for p in params]
        a, b, c = params
        hidden = w.np.relu(w.nn.conv2d(x, a, stride=2))
        hidden = w.np.relu(w.nn.conv2d(hidden, b, stride=2))
        return _descended(w, params, w.nn.cross_entropy(hidden.flatten(1) @ c, y))

    return step


_SAME_NAMES = (
    "exp", "log", "sin", "tanh", "erf", "cos", "tan", "exp2", "log2", "expm1", "log1p", "arcsin", "arccos", "arctan",
    "sinh", "cosh", "arcsinh", "arctanh", "sqrt", "rsqrt",
)  # fmt: skip
_SPECIAL = ("erfc", "erfinv", "gammaln", "digamma")
BY_BEGINNING: Final[dict[str, Maker]] = {
    **{name: _named(name) for name in _SAME_NAMES},
    **{name: _special(name) for name in _SPECIAL},
    "call with one": rows_calls._one,
    "axpy": lambda w: lambda x, y: w.np.add(y, x, alpha=2),
    "polynomial": rows_elementwise._polynomial,
    "gelu": lambda w: lambda x: w.nn.gelu(x, approximate="tanh"),
    "where": rows_elementwise._where,
    "divmod": rows_elementwise._quotient,
    "black-scholes f4": rows_elementwise._black_scholes,
    "black-scholes greeks": _gradient(_prices, of=3),
    "equation of state": rows_elementwise._state,
    "pow": _named("pow"),
    "arctan2": _named("arctan2"),
    "sum f4": _named("sum"),
    "sum f8": _named("sum"),
    "sum rows": _named("sum", dim=1),
    "sum short rows": _named("sum", dim=1),
    "sum columns": _named("sum", dim=0),
    "sum axes 0,2": _named("sum", dim=(0, 2)),
    "max": _named("amax"),
    "argmax f4": _named("argmax"),
    "argmax rows": _named("argmax", dim=1),
    "mean, var": lambda w: lambda x: (x.mean(-1), x.var(-1, correction=0)),
    "softmax f4": _softmax,
    "logsumexp": lambda w: lambda x: w.np.logsumexp(x, -1),
    "layernorm f4": _layernorm,
    "softmax gradient": _gradient(_squares(_softmax), of=1),
    "layernorm gradient": _gradient(_squares(_layernorm), of=1),
    "attention f4": _attention,
    "attention gradients": _gradient(_squares(_attention), of=3),
    "matmul f4": rows_arrays._matmul,
    "matmul f8": rows_arrays._matmul,
    "matmul bf16": _matmul_bf16,
    "matmul transposed": rows_arrays._matmul_transposed,
    "matmul bias relu": _bias_relu,
    "matvec": rows_arrays._matmul,
    "batched matmul": rows_arrays._matmul,
    "convolution f4": _convolution,
    "convolution gradients": _gradient(_squares(_convolution), of=2),
    "transpose": lambda w: lambda x: x.T.contiguous(),
    "permute": _moved,
    "concatenate": lambda w: lambda x, y: w.np.cat([x, y], 1),
    "pad": lambda w: lambda x: w.nn.pad(x, (3, 3, 2, 2)),
    "take": lambda w: lambda table, index: table.index_select(0, index),
    "cast": lambda w: lambda x: x.double(),
    "gather rows": lambda w: lambda table, index: table.index_select(0, index),
    "gather f4": lambda w: lambda table, index: table.index_select(0, index),
    "scatter add": lambda w: lambda x, index, values: x.index_add(0, index, values),
    "sort": lambda w: lambda x: w.np.sort(x).values,
    "argsort": lambda w: lambda x: w.np.argsort(x, stable=True),
    "cumsum f8": _named("cumsum", dim=0),
    "cumsum f4": _named("cumsum", dim=0),
    "cumsum columns": _named("cumsum", dim=0),
    "uniform": _sampled("rand", 10**6),
    "normal": _sampled("randn", 10**7),
    "mandelbrot by mask": _mandelbrot,
    "recurrent net": _recurrent,
    "heat": _heat,
    "n-body": _forces,
    "k-means": _kmeans,
    "mlp step": _mlp,
    "cnn step": _cnn,
    "100 unrolled": rows_programs._unrolled,
    "solve f8": lambda w: w.np.linalg.solve,
    "cholesky": lambda w: w.np.linalg.cholesky,
    "inv": lambda w: w.np.linalg.inv,
    "qr": lambda w: w.np.linalg.qr,
    "svd": lambda w: w.np.linalg.svd,
    "eigh": lambda w: w.np.linalg.eigh,
    "eig": lambda w: w.np.linalg.eig,
    "lu": lambda w: w.np.linalg.lu,
    "expm": lambda w: w.np.linalg.matrix_exp,
    "lstsq": lambda w: lambda a, b: w.np.linalg.lstsq(a, b).solution,
    "eigvalsh": lambda w: w.np.linalg.eigvalsh,
    "svdvals": lambda w: w.np.linalg.svdvals,
    "svdvals gradient": _gradient(lambda w: lambda a: w.np.linalg.svdvals(a).sum(), of=1),
    "pinv": lambda w: w.np.linalg.pinv,
    "det": lambda w: w.np.linalg.det,
    "logdet gradient": _gradient(lambda w: lambda a: w.np.linalg.slogdet(a)[1].sum(), of=1),
    "solve gradients": _gradient(_squares(lambda w: w.np.linalg.solve), of=2),
    **{name: rows_transforms._named(name) for name in ("fft", "fft2", "irfft", "rfft", "rfft2")},
    "rfft gradient": _gradient(rows_transforms._energy, of=1),
    **rows_science.TORCH,
    "lorenz batch": lambda w: rows_programs._lorenz(replace(w, lax=_PythonLoops)),
}
