"""Cumulative sum, product, maximum, minimum and log-sum-exp along an axis, from either end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tracer.errors import AxisError, message
from tracer.ir import dtypes
from tracer.ir.dtypes import DType
from tracer.ir.primitive import Composite, NoRule, Primitive, Rule, Scan
from tracer.ir.scalar import ScalarOp
from tracer.ir.types import Type
from tracer.primitives.arrays.slice_pad_concatenate import concatenate, pad, slice_in_dim
from tracer.primitives.base.broadcasting import axis_of, full, full_like
from tracer.primitives.base.rules import Value, check_kinds, linear_jvp, operand_of
from tracer.primitives.base.shapes import Batched, moveaxis
from tracer.primitives.control.scan import scan_program, slice_type
from tracer.primitives.elementwise.arithmetic import add, div, max, mul, sub
from tracer.primitives.elementwise.bits import and_, not_
from tracer.primitives.elementwise.comparison import eq, is_finite, lt, ne, select
from tracer.primitives.elementwise.complex import complex, is_complex, real
from tracer.primitives.elementwise.conversion import convert_element_type, expand_in_single, reference_in_single
from tracer.primitives.elementwise.exponential import exp, log
from tracer.primitives.elementwise.float_order import exact_extreme
from tracer.primitives.elementwise.rounding import round_even
from tracer.trace.source import here
from tracer.trace.stage import stage
from tracer.trace.trace import bind


def _scan_infer(name: str, kinds: str) -> Rule:
    def infer(x: Type, *, axis: int, reverse: bool) -> Type:
        check_kinds(name, [x], kinds)
        if not 0 <= axis < len(x.shape):
            raise AxisError(message(f"{name}{here()}: axis {axis} is out of range", f"got {x}", help="see x.ndim"))
        return x

    return infer


def _scan_reference(function: Callable[..., Any]) -> Rule:
    """Make a reference from a NumPy accumulation; from the end by flipping twice."""

    def reference(x: Any, *, axis: int, reverse: bool) -> Any:
        with np.errstate(all="ignore"):
            if reverse:
                return np.flip(function(np.flip(x, axis), axis=axis), axis).copy()
            return function(x, axis=axis)

    return reference


def _in_accumulator(function: Callable[..., Any]) -> Callable[..., Any]:
    """Accumulate in float32 for the short floats, in the operand's dtype for any other."""

    def accumulate(x: Any, *, axis: int) -> Any:
        return function(x, axis=axis, dtype=dtypes.accumulator_dtype(x.dtype)).astype(x.dtype)

    return accumulate


def _scan_batch(ctx: Any, xs: Any, axes: Any, *, axis: int, reverse: bool) -> Batched:
    params = {"axis": axis + (axis >= axes[0]), "reverse": reverse}
    return ctx.bind_all(ctx.primitive, xs, params), [axes[0]]


def _in_doubling_steps(
    combine: Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]],
    values: Sequence[Any],
    identities: Sequence[float],
    axis: int,
    reverse: bool,
) -> Sequence[Any]:
    """Return all partial results of an associative `combine(earlier, later)`, in log2(n) steps.

    Hillis & Steele 1986, Data parallel algorithms, Communications of the ACM 29(12).
    """
    distance, n = 1, values[0].shape[axis]
    while distance < n:
        config = [(0, 0, 0)] * values[0].ndim
        config[axis] = (-distance, distance, 0) if reverse else (distance, -distance, 0)
        earlier = [pad(v, identity, config) for v, identity in zip(values, identities, strict=True)]
        values = combine(earlier, values)
        distance *= 2
    return values


# cumsum and cumprod


cumsum_p = Primitive(
    name="cumsum", infer=_scan_infer("cumsum", "ifc"), reference=_scan_reference(_in_accumulator(np.cumsum)),
    jvp=linear_jvp,
    transpose=lambda ctx, cts, xs, axis, reverse: [cumsum(cts[0], axis, not reverse)],
    batch=_scan_batch, lower=Scan(ScalarOp.ADD),
)  # fmt: skip


def _cumprod_jvp(ctx: Any, xs: Any, dxs: Any, *, axis: int, reverse: bool) -> list[Any]:
    """Accumulate dy_k = dy_{k-1} x_k + y_{k-1} dx_k. Nothing is divided, so zeros are exact to every order."""
    (x,), (dx,), (y,) = xs, dxs, ctx.outputs
    shift = [(0, 0, 0)] * x.ndim
    shift[axis] = (-1, 1, 0) if reverse else (1, -1, 0)
    rows = [moveaxis(v, axis, 0) for v in (x, pad(y, 1, shift), dx)]

    def step(inputs: list[Any]) -> list[Any]:
        before, factor, product, change = inputs
        after = add(mul(before, factor), mul(product, change))
        return [after, after]

    row = slice_type(rows[2].type)
    body = stage(step, [row, *(slice_type(r.type) for r in rows)], name="cumprod").program
    _, found = scan_program(body, [], [ctx.zeros(row)], rows, length=x.shape[axis], reverse=reverse)
    return [moveaxis(found, 0, axis)]


def _products_from_one(x: Any, *, axis: int, dtype: DType) -> Any:
    """Compute NumPy's cumprod; for complex x starting from 1, since (1 + 0i) inf i has a NaN part."""
    if not dtypes.is_complex(x.dtype):
        return np.cumprod(x, axis=axis, dtype=dtype)
    row = np.ones((*x.shape[:axis], 1, *x.shape[axis + 1 :]), dtype)
    whole = np.cumprod(np.concatenate([row, x], axis), axis=axis)
    return whole[(slice(None),) * axis + (slice(1, None),)]


cumprod_p = Primitive(
    name="cumprod", infer=_scan_infer("cumprod", "ifc"), reference=_scan_reference(_in_accumulator(_products_from_one)),
    jvp=_cumprod_jvp, transpose=NoRule("cumprod is not linear"), batch=_scan_batch, lower=Scan(ScalarOp.MUL),
)  # fmt: skip


# cummax and cummin


def _extreme_jvp(ctx: Any, xs: Any, dxs: Any, *, axis: int, reverse: bool) -> list[Any]:
    """Share the tangent among the elements so far that attain the extreme, as in a reduction. After a NaN it is 0."""
    (x,), (dx,), (y,) = xs, dxs, ctx.outputs
    if not x.shape[axis]:
        return [dx]
    attains = eq(x, y)
    total = _sums_since_the_last(y, select(attains, dx, full_like(dx, 0)), axis, reverse)
    count = _sums_since_the_last(y, convert_element_type(attains, y.dtype), axis, reverse, first=1)
    return [div(total, count)]


def _sums_since_the_last(y: Any, shares: Any, axis: int, reverse: bool, first: int | None = None) -> Any:
    """Return cumulative sums that restart where y changes, with the share there or, if given, with `first`."""
    n = y.shape[axis]
    earlier, later = (slice_in_dim(y, start, n - 1 + start, axis=axis) for start in (0, 1))
    begins = full((*y.shape[:axis], 1, *y.shape[axis + 1 :]), True)
    changes = concatenate([ne(earlier, later), begins] if reverse else [begins, ne(earlier, later)], axis)
    rows = [moveaxis(v, axis, 0) for v in (changes, shares)]

    def step(inputs: list[Any]) -> list[Any]:
        so_far, anew, share = inputs
        if first is None:
            total = add(select(anew, full_like(so_far, 0), so_far), share)
        else:
            total = select(anew, full_like(so_far, first), add(so_far, share))
        return [total, total]

    row = slice_type(rows[1].type)
    body = stage(step, [row, slice_type(rows[0].type), row], name="sums").program
    _, found = scan_program(body, [], [full(row.shape, 0, shares.dtype)], rows, length=n, reverse=reverse)
    return moveaxis(found, 0, axis)


cummax_p, cummin_p = (
    Primitive(
        name=name, infer=_scan_infer(name, "bifc"),
        reference=_scan_reference(exact_extreme(function, is_max=is_max)),
        jvp=_extreme_jvp, transpose=NoRule(f"{name} is not linear"), batch=_scan_batch, lower=Scan(op),
    )
    for name, function, is_max, op in (
        ("cummax", np.maximum.accumulate, True, ScalarOp.MAX),
        ("cummin", np.minimum.accumulate, False, ScalarOp.MIN),
    )
)  # fmt: skip


# cumlogsumexp


def _log_add_exp(x: Any, y: Any) -> Any:
    """Compute log(e^x + e^y), shifted by the larger real part, or by 0 if that is infinite."""
    greater = max(*map(_real_part, (x, y)))
    shift = select(is_finite(greater), greater, full_like(greater, 0))
    if is_complex(x):
        shift = complex(shift, 0)
    return add(log(add(exp(sub(x, shift)), exp(sub(y, shift)))), shift)


def _real_part(x: Any) -> Any:
    return real(x) if is_complex(x) else x


def _complex_log_add_exp(x: Any, y: Any) -> Any:
    greater = np.maximum(x.real, y.real)
    shift = np.where(np.isfinite(greater), greater, 0)
    return np.log(np.exp(x - shift) + np.exp(y - shift)) + shift


def _accumulated_log_add_exp(x: Any, *, axis: int) -> Any:
    """Accumulate NumPy's logaddexp in f64, since its errors add up. Complex numbers have none in NumPy."""
    if not dtypes.is_complex(x.dtype):
        return np.logaddexp.accumulate(x.astype(dtypes.F64), axis=axis).astype(x.dtype)
    found = np.moveaxis(np.array(x), axis, 0)
    before = np.full(found.shape[1:], -np.inf, x.dtype)
    for k in range(len(found)):
        before = found[k] = _complex_log_add_exp(before, found[k])
    return np.moveaxis(found, 0, axis)


_FEW: Final = 8  # elements, whose doubling steps are one loop nest


def _cumlogsumexp_expand(x: Any, *, axis: int, reverse: bool) -> Any:
    def combine(earlier: Sequence[Any], later: Sequence[Any]) -> list[Any]:
        return [_log_add_exp(earlier[0], later[0])]

    if is_complex(x) and x.shape[axis] == 1:
        return _log_add_exp(full_like(x, -np.inf), x)  # the principal value, as of longer sums
    if is_complex(x) or x.shape[axis] <= _FEW:
        return _in_doubling_steps(combine, (x,), (-np.inf,), axis, reverse)[0]
    return _by_running_sums(x, axis, reverse)


def _by_running_sums(x: Any, axis: int, reverse: bool) -> Any:
    """Sum e^(x - m), m the integer nearest to the running maximum. The sum is rescaled where m rises.

    s_k = s_{k-1} d_k + t_k, in f64. Rescaling at every rise of the maximum would accumulate rounding errors, thousands
    of them if it rises slowly. An integer m rises by 1 at least. Where the maximum is not finite, it is the result.
    """
    top, whole, less = _running_max(x, axis, reverse)
    sums = _sums_made_smaller(less, exp(sub(x, whole)), axis, reverse)  # 0 before the first finite value
    return select(is_finite(top), add(log(convert_element_type(sums, x.dtype)), whole), top)


def _running_max(x: Any, axis: int, reverse: bool) -> tuple[Any, Any, Any]:
    """Return the running maximum, the nearest integer m (0 if infinite), and the factor e^(rise of m) of each step."""
    top = cummax(x, axis, reverse)
    whole = select(is_finite(top), round_even(top), full_like(top, 0))
    rise = sub(_one_before(whole, 0, axis, reverse), whole)
    return top, whole, exp(select(lt(rise, full_like(rise, 0)), rise, full_like(rise, 0)))


def _one_before(x: Any, first: float, axis: int, reverse: bool) -> Any:
    shift = [(0, 0, 0)] * x.ndim
    shift[axis] = (-1, 1, 0) if reverse else (1, -1, 0)
    return pad(x, first, shift)


def _sums_made_smaller(less: Any, terms: Any, axis: int, reverse: bool) -> Any:
    """Accumulate s_k = s_{k-1} less_k + terms_k, in f64."""
    rows = [moveaxis(convert_element_type(part, dtypes.F64), axis, 0) for part in (less, terms)]

    def step(inputs: list[Any]) -> list[Any]:
        so_far, less, term = inputs
        total = add(mul(so_far, less), term)
        return [total, total]

    row = slice_type(rows[0].type)
    body = stage(step, [row] * 3, name="sums").program
    initial = full(row.shape, 0, dtypes.F64)
    _, sums = scan_program(body, [], [initial], rows, length=less.shape[axis], reverse=reverse)
    return moveaxis(sums, 0, axis)


def _weight(x: Any, z: Any) -> Any:
    """Compute e^(x - z), and 1 where both are the same infinity, so that x gets the tangent there, as in logaddexp."""
    same = and_(eq(x, z), not_(is_finite(_real_part(z))))
    return exp(select(same, full_like(x, 0), sub(x, z)))


def _cumlogsumexp_jvp(ctx: Any, xs: Any, dxs: Any, *, axis: int, reverse: bool) -> list[Any]:
    """Weight tangents by e^(x - y), at most 1: the result is a mean of tangents."""
    if not is_complex(xs[0]) and xs[0].shape[axis] > _FEW:
        return [_mean_of_tangents(xs[0], dxs[0], axis, reverse)]

    def combine(earlier: Sequence[Any], later: Sequence[Any]) -> list[Any]:
        (x, dx), (y, dy) = earlier, later
        z = _log_add_exp(x, y)
        return [z, add(mul(dx, _weight(x, z)), mul(dy, _weight(y, z)))]

    return [_in_doubling_steps(combine, (xs[0], dxs[0]), (-np.inf, 0), axis, reverse)[1]]


def _mean_of_tangents(x: Any, dx: Any, axis: int, reverse: bool) -> Any:
    """Divide running sums of e^(x - m) dx by running sums of e^(x - m). Elements equal to an infinite maximum weigh 1.

    m counts as a constant: the quotient does not depend on it.
    """
    top, whole, less = _running_max(x, axis, reverse)
    before, one, none = _one_before(top, -np.inf, axis, reverse), full_like(x, 1), full_like(x, 0)
    finite = is_finite(top)
    less = select(and_(finite, is_finite(before)), less, select(eq(top, before), one, none))
    weights = select(finite, exp(sub(x, whole)), select(eq(x, top), one, none))
    sums = _sums_made_smaller(less, mul(weights, dx), axis, reverse)
    size = select(finite, exp(sub(whole, cumlogsumexp(x, axis, reverse))), select(eq(top, top), one, top))
    return mul(convert_element_type(sums, x.dtype), size)


cumlogsumexp_p = Primitive(
    name="cumlogsumexp", infer=_scan_infer("cumlogsumexp", "fc"),
    reference=reference_in_single(_scan_reference(_accumulated_log_add_exp)),
    jvp=_cumlogsumexp_jvp, transpose=NoRule("cumlogsumexp is not linear"), batch=_scan_batch,
    lower=Composite(expand_in_single(_cumlogsumexp_expand), computes=True),
)  # fmt: skip


def cumsum(operand: Value, axis: int = 0, reverse: bool = False) -> Any:
    """Sum all elements up to each one along an axis; with `reverse`, from each one on.

    Integers wrap, f16 and bf16 accumulate in f32. Compiled for a CPU, floats are added in an order that follows from
    the shape alone. Partial sums may overflow where the sum, element by element, does not.

    operand: numbers [*s]; axis: counted from either end. Returns the same type, [*s]. Raises DTypeError for bool,
    AxisError if the axis is out of range.

    >>> cumsum(tnp.asarray([1, 2, 3]), reverse=True)
    Array([6, 5, 3], i64)
    """
    return _scan(cumsum_p, operand, axis, reverse)


def cumprod(operand: Value, axis: int = 0, reverse: bool = False) -> Any:
    """Multiply all elements up to each one along an axis; with `reverse`, from each one on.

    operand: numbers [*s]; axis: counted from either end. Returns the same type, [*s]. Raises DTypeError for bool,
    AxisError if the axis is out of range.

    >>> cumprod(tnp.asarray([1, 2, 3]))
    Array([1, 2, 6], i64)
    """
    return _scan(cumprod_p, operand, axis, reverse)


def cummax(operand: Value, axis: int = 0, reverse: bool = False) -> Any:
    """Take the maximum of all elements up to each one along an axis. NaN from the first NaN on.

    Complex numbers compare by real, then by imaginary part.

    operand: numbers or bool [*s]; axis: counted from either end. Returns the same type, [*s]. Equal elements share the
    derivative, as in `reduce_max`. Raises AxisError if the axis is out of range.

    >>> cummax(tnp.asarray([1, 3, 2]))
    Array([1, 3, 3], i64)
    """
    return _scan(cummax_p, operand, axis, reverse)


def cummin(operand: Value, axis: int = 0, reverse: bool = False) -> Any:
    """Take the minimum of all elements up to each one along an axis. NaN from the first NaN on.

    Complex numbers compare by real, then by imaginary part.

    operand: numbers or bool [*s]; axis: counted from either end. Returns the same type, [*s]. Equal elements share the
    derivative, as in `reduce_min`. Raises AxisError if the axis is out of range.

    >>> cummin(tnp.asarray([2, 3, 1]))
    Array([2, 2, 1], i64)
    """
    return _scan(cummin_p, operand, axis, reverse)


def cumlogsumexp(operand: Value, axis: int = 0, reverse: bool = False) -> Any:
    """Compute log(sum(exp(x))) of all elements up to each one along an axis, without overflow.

    Complex results have an imaginary part in [-pi, pi].

    operand: floats or complex numbers of shape [*s]; axis: counted from either end. Returns the same type, [*s]. Raises
    DTypeError for integers and bool, AxisError if the axis is out of range.

    >>> cumlogsumexp(tnp.asarray([0.0, 0.0]))
    Array([0.        , 0.69314718], f64)
    """
    return _scan(cumlogsumexp_p, operand, axis, reverse)


def _scan(primitive: Primitive, operand: Value, axis: int, reverse: bool) -> Any:
    x = operand_of(primitive.name, operand)
    return bind(primitive, x, axis=axis_of(primitive.name, axis, len(x.type.shape)), reverse=bool(reverse))


SCANS: tuple[Primitive, ...] = (cumsum_p, cumprod_p, cummax_p, cummin_p, cumlogsumexp_p)
