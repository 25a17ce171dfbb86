"""What all laws share: eager execution, which `import tracer` would install."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tracer.runtime.eager import execute
from tracer.trace.trace import eager


@pytest.fixture(autouse=True)
def _eager() -> Iterator[None]:
    """Primitives outside any trace run at once."""
    before, eager.execute = eager.execute, execute
    yield
    eager.execute = before
