"""Work from which on a call of a compiled program is long; see `Cost.work`."""

from typing import Final

LONG: Final = 50_000
"""Work of a call that releases the GIL: some 5 µs of one core."""
HEARD: Final = 2_000_000
"""Work of a call that listens to Ctrl-C, some 0.2 ms: asking the system takes 1 µs."""
PATIENCE: Final = 1 << 14
"""Steps of loops of unknown length, some 10 µs, after which a call is long and listens; see `emit.polls`."""
