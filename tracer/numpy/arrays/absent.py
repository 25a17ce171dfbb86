"""Public names of NumPy and JAX that are absent here, and the reasons, for AttributeError and docs/numpy.md."""

from __future__ import annotations

_FIXED = "arrays hold numbers of one dtype that the compiler supports"
_DATES = f"{_FIXED}; keep dates as int64 counts of a unit"
_TEXT = f"{_FIXED}; keep text in NumPy arrays"
_EXTENDED = "no compiler target has it; float64 is the widest float"
_MATRIX = "NumPy advises against matrix; 2-d arrays have @ and .T"
_MEMORY = "arrays are immutable values: their memory cannot be iterated over, mapped or written to"
_ERRORS = "floating-point errors never call anything: they give inf and NaN, which isfinite finds"
_THEIRS = "about NumPy itself: take it from numpy"
_PARTS = "a submodule of NumPy's own: take it from numpy"

ABSENT: dict[str, str] = {
    **dict.fromkeys(
        ("busday_count", "busday_offset", "busdaycalendar", "datetime64", "datetime_as_string", "datetime_data",
         "is_busday", "isnat", "timedelta64"), _DATES,
    ),
    **dict.fromkeys(("bytes_", "char", "str_", "strings", "fromregex"), _TEXT),
    **dict.fromkeys(("rec", "recarray", "record", "void"), f"{_FIXED}; a record is a dict or a dataclass of arrays"),
    **dict.fromkeys(("clongdouble", "complex256", "complex192", "float128", "float96", "longdouble"), _EXTENDED),
    **dict.fromkeys(("asmatrix", "bmat", "matrix"), _MATRIX),
    **dict.fromkeys(("flatiter", "memmap", "nditer", "nested_iters"), _MEMORY),
    **dict.fromkeys(("geterrcall", "seterrcall"), _ERRORS),
    **dict.fromkeys(
        ("ScalarType", "exceptions", "get_include", "getbufsize", "info", "little_endian", "mintypecode", "sctypeDict",
         "setbufsize", "show_config", "show_runtime", "test", "testing", "typecodes", "typename"), _THEIRS,
    ),
    **dict.fromkeys(("ctypeslib", "dtypes", "emath", "f2py"), _PARTS),
    "asfortranarray": "all arrays are in C order; the compiler chooses the order of reads",
    "broadcast": "it iterates over memory; use broadcast_arrays or broadcast_shapes",
    **{
        old: f"NumPy has removed it; use {new}"
        for old, new in (
            ("Inf", "inf"), ("Infinity", "inf"), ("NAN", "nan"), ("NINF", "-inf"), ("NaN", "nan"), ("PINF", "inf"),
            ("alltrue", "all"), ("asfarray", "asarray(x, dtype=float)"), ("cast", "x.astype"),
            ("cumproduct", "cumprod"), ("find_common_type", "result_type"), ("infty", "inf"),
            ("issctype", "issubdtype(x, generic)"), ("msort", "sort(x, axis=0)"), ("round_", "round"),
            ("safe_eval", "ast.literal_eval"), ("sometrue", "any"),
        )
    },
    "in1d": "NumPy has removed it; use isin",
    "ma": "masks are arrays: where, the nan-functions and the where= of reductions take them",
    "poly1d": "NumPy advises against it; polyval, polyadd and others take the coefficients",
    "polynomial": "numpy.polynomial's functions of x, as chebval, return tracer arrays for concrete coefficients, also "
    "of a traced x; its other functions take concrete arrays and return NumPy arrays; see docs/foreign.md",
    "product": "NumPy has removed it; use prod",
    "random": "there is no hidden state; tracer.random has keys",
    "row_stack": "NumPy has deprecated it; use vstack",
    "trapz": "NumPy has removed it; use trapezoid",
    "typing": "see tracer.typing",
}  # fmt: skip
