"""Device functions that kernels call, for operations that C++ leaves undefined or defines differently from `ir.scalar`.

A module contains the ones that it calls, in the order of `HELPERS`. All are plain C++ on bits and values.
Exceptions are the two conversions of f16, which the machine has instructions for, and the moves of wide accesses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from textwrap import dedent
from typing import Final

from tracer.codegen.cuda.types import computing_name, integer, type_name
from tracer.ir.dtypes import (
    BF16,
    F8E8M0FNU,
    F16,
    F32,
    F64,
    INTEGERS,
    NARROW_FLOATS,
    NARROW_INTEGERS,
    SIGNED,
    UNSIGNED,
    DType,
    bits,
    is_narrow,
    is_signed,
    short_name,
    wide_dtype,
)
from tracer.ir.formats import FORMATS

_FUNCTION: Final = "static __device__ __forceinline__ "


def _helper(text: str) -> str:
    return _FUNCTION + dedent(text).strip() + "\n"


# -- short floats --------------------------------------------------------------------------------------


def _f16() -> Iterator[tuple[str, str]]:
    for name, result, given, instruction, letters in (
        ("widen", "f32", "f16", "cvt.f32.f16", "fh"),
        ("shorten", "f16", "f32", "cvt.rn.f16.f32", "hf"),
    ):
        yield (
            f"{name}_f16",
            _helper(f"""
            {result} tr_{name}_f16({given} x) {{
              {result} r;
              asm("{instruction} %0, %1;" : "={letters[0]}"(r) : "{letters[1]}"(x));
              return r;
            }}"""),
        )


def _bf16() -> Iterator[tuple[str, str]]:
    yield "widen_bf16", _helper("f32 tr_widen_bf16(bf16 x) { return __uint_as_float((u32)x << 16); }")
    yield (
        "shorten_bf16",
        _helper("""
        bf16 tr_shorten_bf16(f32 x) {
          u32 bits = __float_as_uint(x);
          return (bf16)((x != x ? bits | 0x400000u : bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
        }"""),
    )


def _narrow_float(dtype: DType) -> Iterator[tuple[str, str]]:
    """Yield conversions by integers alone; `codegen.llvm.emit.short_floats` explains the steps."""
    name, form, kind = short_name(dtype), FORMATS[dtype], type_name(dtype)
    sign, first_nan = form.sign, form.first_nan
    if form.specials:
        widened = f"""
          u32 special = placed | 0x7f800000u | (size >= 0x{first_nan:x}u ? 0x400000u : 0u);
          u32 bits = size >= 0x{form.top:x}u ? special : finite;"""
    else:
        widened = f"u32 bits = {f'x == 0x{form.nan:x} ? 0x7fc00000u : finite' if form.unsigned_zero else 'finite'};"
    yield (
        f"widen_{name}",
        _helper(f"""
        f32 tr_widen_{name}({kind} x) {{
          u32 size = x & 0x{sign - 1:x}u, placed = size << {form.shift};
          u32 finite = __float_as_uint(__uint_as_float(placed) * 0x1p{127 - form.bias}f);
          {widened.strip()}
          return __uint_as_float(bits | (x & 0x{sign:x}u) << {32 - form.width});
        }}"""),
    )
    signed = f"(bits >> {32 - form.width} & 0x{sign:x}u)"
    if form.specials:
        rest = f"""
          u32 value = size > 0x7f800000u ? 0x{form.nan:x}u : finite;
          return ({kind})(value | {signed});"""
    else:
        signed = f"(finite == 0 ? 0u : finite | {signed})" if form.unsigned_zero else f"(finite | {signed})"
        rest = f"return ({kind})(size > 0x7f800000u ? 0x{form.nan:x}u : {signed});"
    yield (
        f"shorten_{name}",
        _helper(f"""
        {kind} tr_shorten_{name}(f32 x) {{
          u32 bits = __float_as_uint(x), size = bits & 0x7fffffffu;
          u32 normal = (size + 0x{form.rebias & 0xFFFFFFFF:x}u + (size >> {form.shift} & 1u)) >> {form.shift};
          u32 small = __float_as_uint(__uint_as_float(size) + 0x1p{form.step}f) - 0x{(127 + form.step) << 23:x}u;
          u32 near = size < 0x{form.first_normal:x}u ? small : normal;
          u32 finite = near < 0x{form.top:x}u ? near : 0x{form.top:x}u;
          {rest.strip()}
        }}"""),
    )


def _exponents() -> Iterator[tuple[str, str]]:
    """Yield the conversions of f8e8m0fnu, whose bits are an f32's exponent."""
    name, kind = short_name(F8E8M0FNU), type_name(F8E8M0FNU)
    yield (
        f"widen_{name}",
        _helper(f"""
        f32 tr_widen_{name}({kind} x) {{
          return __uint_as_float(x == 0 ? 0x400000u : x == 0xff ? 0x7fc00000u : (u32)x << 23);
        }}"""),
    )
    yield (
        f"shorten_{name}",
        _helper(f"""
        {kind} tr_shorten_{name}(f32 x) {{
          u32 bits = __float_as_uint(x), held = bits < 0x7fc00000u ? bits : 0x7fc00000u;
          u32 near = (held + (held < 0x800000u ? 0x3fffffu : 0x400000u)) >> 23;
          return ({kind})(bits == 0 || near > 0xff ? 0xffu : near);
        }}"""),
    )


def _round_to_odd() -> Iterator[tuple[str, str]]:
    """Yield f64 to an f32 that rounds to any shorter float as the f64 itself would (Boldo & Melquiond 2008)."""
    yield (
        "round_to_odd",
        _helper("""
        f32 tr_round_to_odd(f64 x) {
          f32 near = (f32)x;
          f64 back = near;
          u32 bits = __float_as_uint(near) - (fabs(back) > fabs(x) ? 1u : 0u);
          return __uint_as_float(bits | (back < x || back > x ? 1u : 0u));
        }"""),
    )


# -- floats --------------------------------------------------------------------------------------------


def _extrema(dtype: DType) -> Iterator[tuple[str, str]]:
    """Yield maximum and minimum: NaN wins, and -0 is less than +0, since the bits of equal values are joined."""
    name = short_name(dtype)
    single, double = ("__float_as_int", "__int_as_float"), ("__double_as_longlong", "__longlong_as_double")
    to, back = single if dtype == F32 else double
    for op, sign, join in (("max", ">", "&"), ("min", "<", "|")):
        yield (
            f"{op}_{name}",
            _helper(f"""
            {name} tr_{op}_{name}({name} a, {name} b) {{
              {name} tie = a == b ? {back}({to}(a) {join} {to}(b)) : a + b;
              return a {sign} b ? a : b {sign} a ? b : tie;
            }}"""),
        )


def _nextafter(dtype: DType) -> Iterator[tuple[str, str]]:
    """Yield the next float from bits and values (f32 for short floats); the caller handles NaN."""
    word, value = f"u{8 * dtype.itemsize}", type_name(dtype if dtype == F64 else F32)
    sign = f"({word})1 << {8 * dtype.itemsize - 1}"
    yield (
        f"nextafter_{short_name(dtype)}",
        _helper(f"""
        {word} tr_nextafter_{short_name(dtype)}({value} a, {value} b, {word} a_bits, {word} b_bits) {{
          bool grows = (a < b) == ((a_bits & {sign}) == 0);
          {word} next = grows ? a_bits + 1 : a_bits - 1;
          next = a == 0 ? (b_bits & {sign}) | 1 : next;
          return a == b ? b_bits : next;
        }}"""),
    )


def _parts(dtype: DType) -> Iterator[tuple[str, str]]:
    """Yield exponents and significands, the latter in [3/4, 3/2), and products with powers of two."""
    single = dtype == F32
    name, word, suffix = short_name(dtype), "i32" if single else "i64", "f" if single else ""
    to, back = ("__float_as_int", "__int_as_float") if single else ("__double_as_longlong", "__longlong_as_double")
    fraction, tiny, least = (23, "0x1p-126f", "0x3f400000") if single else (52, "0x1p-1022", "0x3fe8000000000000ll")
    infinite = f"{back}({'0x7f800000' if single else '0x7ff0000000000000ll'})"
    nan = f"{back}({'0x7fc00000' if single else '0x7ff8000000000000ll'})"
    offset = f"{to}(x < {tiny} ? x * 0x1p{fraction + 1}{suffix} : x) - {least}"
    yield (
        f"exponent_{name}",
        _helper(f"""
        {name} tr_exponent_{name}({name} x) {{
          {word} offset = {offset};
          {name} e = ({name})((offset >> {fraction}) - (x < {tiny} ? {fraction + 1} : 0));
          return x > 0 ? x < {infinite} ? e : x : x == 0 ? -{infinite} : {nan};
        }}"""),
    )
    yield (
        f"significand_{name}",
        _helper(f"""
        {name} tr_significand_{name}({name} x) {{
          {word} offset = {offset};
          {name} m = {back}((offset & ((({word})1 << {fraction}) - 1)) + {least});
          return x > 0 && x < {infinite} ? m : x >= 0 ? ({name})1 : {nan};
        }}"""),
    )
    yield (
        f"scale_{name}",
        _helper(f"{name} tr_scale_{name}({name} x, {name} n) {{ return ldexp{suffix}(x, n == n ? (i32)n : 0); }}"),
    )


def _integer(value: int, target: DType) -> str:
    return integer(value, wide_dtype(target) if is_narrow(target) else target)


def _saturation(source: DType, target: DType) -> Iterator[tuple[str, str]]:
    """Yield truncation, saturating, and 0 for NaN. The bounds are powers of two, exact in either float."""
    s, t, width = short_name(source), type_name(wide_dtype(target) if is_narrow(target) else target), bits(target)
    low, high = (-(1 << (width - 1)), 1 << (width - 1)) if is_signed(target) else (0, 1 << width)
    suffix = "f" if source == F32 else ""
    first = f"{'-' if low else ''}0x{'1' if low else '0'}p{width - 1 if low else 0}{suffix}"
    last = f"0x1p{width - 1 if low else width}{suffix}"
    yield (
        f"{short_name(target)}_of_{s}",
        _helper(f"""
        {t} tr_{short_name(target)}_of_{s}({s} x) {{
          {t} ends = x >= {last} ? {_integer(high - 1, target)} : {_integer(low, target)};
          return x >= {first} && x < {last} ? ({t})x : x != x ? ({t})0 : ends;
        }}"""),
    )


# -- integers ------------------------------------------------------------------------------------------


def _division(dtype: DType) -> Iterator[tuple[str, str]]:
    """Yield division and remainder: x / 0 has all bits set, x % 0 is x; the minimum by -1 gives itself and 0."""
    t, wide = short_name(dtype), computing_name(dtype)
    quotient = f"b == -1 ? ({t})(0 - ({wide})a) : ({t})(a / b)" if is_signed(dtype) else f"({t})(a / b)"
    rest = f"b == -1 ? ({t})0 : ({t})(a % b)" if is_signed(dtype) else f"({t})(a % b)"
    ones = f"({t})-1" if is_signed(dtype) else f"({t})~({t})0"
    yield f"idiv_{t}", _helper(f"{t} tr_idiv_{t}({t} a, {t} b) {{ return b == 0 ? {ones} : {quotient}; }}")
    yield f"irem_{t}", _helper(f"{t} tr_irem_{t}({t} a, {t} b) {{ return b == 0 ? a : {rest}; }}")


def _shifts(dtype: DType) -> Iterator[tuple[str, str]]:
    """Yield shifts: by the width or more, 0 or the sign."""
    t, width = short_name(dtype), 8 * dtype.itemsize
    word, wide, signed = f"u{width}", computing_name(dtype), f"i{width}"
    inside = f"({word})n < {width}"
    yield f"shl_{t}", _helper(f"{t} tr_shl_{t}({t} a, {t} n) {{ return {inside} ? ({t})(({wide})a << n) : ({t})0; }}")
    yield (
        f"shr_logical_{t}",
        _helper(f"{t} tr_shr_logical_{t}({t} a, {t} n) {{ return {inside} ? ({t})(({word})a >> n) : ({t})0; }}"),
    )
    yield (
        f"shr_arithmetic_{t}",
        _helper(
            f"{t} tr_shr_arithmetic_{t}({t} a, {t} n) "
            f"{{ return ({t})(({signed})a >> ({inside} ? n : ({t}){width - 1})); }}"
        ),
    )


# -- wide accesses ---------------------------------------------------------------------------------------


def _wide() -> Iterator[tuple[str, str]]:
    """Yield moves of N elements at once between memory, aligned to all of them, and an array in registers."""
    yield "vector", "template <class T, int N> struct __align__(sizeof(T) * N) tr_vector { T at[N]; };\n"
    yield (
        "load_wide",
        "template <int N, class T> "
        + _helper("""
        void tr_load_wide(T* x, i64 k, const T* p, i64 i) {
          const tr_vector<T, N> v = *(const tr_vector<T, N>*)(p + i);
          #pragma unroll
          for (i32 n = 0; n < N; ++n) x[k + n] = v.at[n];
        }"""),
    )
    yield (
        "store_wide",
        "template <int N, class T> "
        + _helper("""
        void tr_store_wide(T* p, i64 i, const T* x, i64 k) {
          tr_vector<T, N> v;
          #pragma unroll
          for (i32 n = 0; n < N; ++n) v.at[n] = x[k + n];
          *(tr_vector<T, N>*)(p + i) = v;
        }"""),
    )


def _all() -> Iterator[tuple[str, str]]:
    yield from _wide()
    yield from _f16()
    yield from _bf16()
    for dtype in NARROW_FLOATS:
        yield from _exponents() if dtype == F8E8M0FNU else _narrow_float(dtype)
    yield from _round_to_odd()
    for dtype in (F32, F64):
        yield from _extrema(dtype)
        yield from _parts(dtype)
    for dtype in (F16, BF16, F32, F64):
        yield from _nextafter(dtype)
    for source in (F32, F64):
        for target in (*INTEGERS, *NARROW_INTEGERS):
            yield from _saturation(source, target)
    for dtype in (*SIGNED, *UNSIGNED):
        yield from _division(dtype)
        yield from _shifts(dtype)


HELPERS: Final[Mapping[str, str]] = dict(_all())


def helper_text(used: Mapping[str, None]) -> str:
    """Return the definitions of the helpers in `used`.

    Built-in helpers come first, in a fixed order, then helpers given by their text.
    """
    given = [name for name in used if name not in HELPERS]
    return "".join([*(text for name, text in HELPERS.items() if name in used), *sorted(given)])
