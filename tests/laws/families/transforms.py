"""Cases of fft: every type, short and long lengths, even, odd and prime, along every axis."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.laws.cases import WIDE, Case, case, typed
from tests.laws.values import anything, direction
from tracer.primitives.catalogue import BY_NAME

LINES = [  # the shape with the length n for None, and the axis
    ((None,), 0), ((3, None), 1), ((None, 2), 0), ((2, None, 3), 1), ((0, None), 1), ((9, None), 1), ((None, 17), 0),
]  # fmt: skip
LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16)
LONGER = (30, 31, 64, 100, 112, 128)  # values alone: finite differences of these take too long


def transform_cases() -> Iterator[Case]:
    """Each type on each length, the shapes and dtypes in turn."""
    for turn, n in enumerate((*LENGTHS, *LONGER)):
        for number, fft_type in enumerate(("FFT", "IFFT", "RFFT", "IRFFT")):
            for step in (0, 3):
                shape, axis = LINES[(turn + number + step) % len(LINES)]
                for width in ("64", "32") if step else ("64",):
                    yield _case(fft_type, n, shape, axis, width, 1.0 if step else 0.75)
    for fft_type in ("FFT", "IFFT", "RFFT", "IRFFT"):  # of one sample, any number is as good
        for width in ("64", "32"):
            yield replace(_case(fft_type, 1, (4, None), 1, width, 1.0), values=(anything,))
    for fft_type in ("FFT", "IFFT", "RFFT", "IRFFT"):  # more than a thousand elements
        yield _case(fft_type, 1024, (2, None), 1, "64", 1.0)
        yield _case(fft_type, 360, (None, 4), 0, "32", 1.0)


def _case(
    fft_type: str, n: int, shape: tuple[int | None, ...], axis: int, width: str, scale: float
) -> Case:  # fmt: skip
    short = f"f{width}" if fft_type == "RFFT" else {"64": "c128", "32": "c64"}[width]
    given = n // 2 + 1 if fft_type == "IRFFT" else n
    type = typed(short, *[given if size is None else size for size in shape])
    smooth = direction if short in WIDE and n in LENGTHS else None
    return case(BY_NAME["fft"], [type], direction, smooth, fft_type=fft_type, axis=axis, length=n, scale=scale)
