"""Write docs/jax.md: JAX's public names by module, which of them are here, and why not where they are not.

Run:  python -m tools.jax_table   (the names come from tests/jax_signatures.json, which tools/jax_signatures.py writes)
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from tools.jax_tables import ROOT
from tracer.absent import ABSENT
from tracer.settings import JAXS

TARGET = ROOT / "docs" / "jax.md"
STORED = json.loads((ROOT / "tests" / "jax_signatures.json").read_text(encoding="utf-8"))

_HEAD = """# JAX's names

Written by `tools/jax_table.py`; compared with JAX {version}. `jax.numpy` is in [numpy.md](numpy.md), `jax.lax` in
[lax.md](lax.md).

`import tracer as jax` provides the names of these modules. The AttributeError of a missing name says why.

| module | JAX's names | here |
|---|---|---|
"""

_SETTINGS = """
## JAX's settings

`tracer.config.update` accepts them at these values, which describe tracer, and refuses other values with the reason.

| setting | values | why no other |
|---|---|---|
"""


def _lines() -> Iterator[str]:
    modules = STORED["modules"]
    yield _HEAD.format(version=STORED["jax"]).rstrip()
    for module, names in modules.items():
        missing = set(ABSENT.get(_ours(module), {})) & set(names)
        yield f"| `{module}` | {len(names)} | {len(names) - len(missing)} |"
    yield _SETTINGS.rstrip()
    for name, setting in JAXS.items():
        yield f"| `{name}` | {', '.join(f'`{value!r}`' for value in setting.values)} | {setting.why} |"
    for module in ABSENT:
        if ABSENT[module] and module != "tracer.lax":
            yield f"\n## Not in `{module}`\n\n| name | why |\n|---|---|"
            for name in sorted(ABSENT[module]):
                yield f"| `{name}` | {ABSENT[module][name]} |"


def _ours(module: str) -> str:
    return "tracer" + module.removeprefix("jax")


def text() -> str:
    """The page."""
    return "\n".join(_lines()) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
