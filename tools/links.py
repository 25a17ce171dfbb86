"""Visits of the links that lead out of the documentation: `scripts/docs --links`, which needs a network.

    python -m tools.links docs tracer README.md

Each address is asked for once. A section that an address names must be on its page.
"""

from __future__ import annotations

import re
import sys
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_ADDRESS = re.compile(r"""https?://(?!localhost|127\.)[^\s<>"'`)\]]+[^\s<>"'`)\].,:;]""")
_SECONDS = 20
_BROWSER = {"User-Agent": "Mozilla/5.0"}  # some hosts refuse Python's own name


def addresses(files: Iterable[Path]) -> dict[str, list[str]]:
    """Return the addresses in files of text, with the files that name each."""
    found: dict[str, list[str]] = {}
    for file in files:
        for address in dict.fromkeys(_ADDRESS.findall(file.read_text(encoding="utf-8"))):
            found.setdefault(address, []).append(str(file))
    return found


def problem(address: str) -> str:
    """Visit an address. Returns the reason why it leads nowhere, "" if it leads to its page and section."""
    page, _, section = address.partition("#")
    try:
        with urllib.request.urlopen(urllib.request.Request(page, headers=_BROWSER), timeout=_SECONDS) as answer:
            text = answer.read().decode("utf-8", "replace")
    except urllib.error.HTTPError as error:
        return f"status {error.code}"
    except OSError as error:
        return str(getattr(error, "reason", error))
    named = section and not re.search(rf"""\b(?:id|name)=["']?{re.escape(section)}\b""", text)
    return f"no section {section}" if named else ""


def _files(names: Iterable[str]) -> Iterator[Path]:
    for path in map(Path, names):
        yield from sorted((*path.rglob("*.md"), *path.rglob("*.py"))) if path.is_dir() else [path]


def main(names: list[str]) -> int:
    """Visit all links of files and folders. Returns 1, and prints the broken ones, if there are any."""
    found = addresses(_files(names))
    with ThreadPoolExecutor(8) as visitors:
        problems = dict(zip(found, visitors.map(problem, found), strict=True))
    broken = {address: why for address, why in problems.items() if why}
    for address, why in broken.items():
        print(f"{address}: {why} (in {', '.join(found[address])})")
    print(f"{len(found)} links lead out of the documentation, {len(broken)} of them nowhere")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
