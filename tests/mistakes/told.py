"""The mistakes that newcomers make, and what they are told: whole messages, with the line of the mistake.

`# here` marks the line that a message names, `# made` the line where the array in question was made.
"""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tracer
import tracer.numpy as tnp

PACKAGE = str(Path(tracer.__file__).parent)
X = tnp.arange(3.0)


def fails(kind: type[Exception], mistake: Callable[[], Any], expected: str) -> None:
    """The mistake raises this very error and no other, and the innermost frame outside the package is in the caller's
    file."""
    with pytest.raises(kind) as caught:
        mistake()
    assert type(caught.value) is kind
    assert caught.value.__context__ is None or caught.value.__suppress_context__  # else both are shown
    caller = sys._getframe(1)
    file = Path(caller.f_code.co_filename)
    lines, first = inspect.getsourcelines(caller.f_code)
    for mark in ("here", "made"):
        found = [number for number, text in enumerate(lines, first) if text.rstrip().endswith(f"# {mark}")]
        if found:
            expected = expected.replace(f"@{mark}", f"{file.name}:{found[0]}")
    assert str(caught.value) == expected
    theirs = [frame.filename for frame in traceback.extract_tb(caught.tb) if not frame.filename.startswith(PACKAGE)]
    assert theirs[-1] == str(file)
