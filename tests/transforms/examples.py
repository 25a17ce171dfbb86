"""The programs that the transforms are combined over, by name."""

from __future__ import annotations

from tests.transforms.loop_programs import LOOPS
from tests.transforms.programs import PROGRAMS

EXAMPLES = {example.function.__name__: example for example in [*PROGRAMS, *LOOPS]}
