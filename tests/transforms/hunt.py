"""The long hunt for compositions that fail: chains of one to four transforms over programs, drawn by seeds.

    scripts/hunt compositions run LEDGER SECONDS [FIRST]
    scripts/hunt compositions log LEDGER...

The first tries seeds one after another, from where the ledger ends, and adds what failed; the second prints the log
that is kept under tests/transforms/results.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random

from benchmarks.machine import head, revision
from tests.laws.hunt import at_most
from tests.transforms.combining import TRANSFORMS, Chain, allowed, check
from tests.transforms.examples import EXAMPLES

LONGEST = 300  # seconds, for one composition
DERIVATIVES = 3  # at most: differences of differences of differences have no digits left


def draw(seed: int) -> tuple[str, Chain]:
    """A program's name, and a chain that it has."""
    random = Random(seed)
    names = sorted(EXAMPLES)
    while True:
        name = random.choice(names)
        chain = [random.choice(TRANSFORMS) for _ in range(random.choice((1, 2, 2, 3, 3, 3, 4)))]
        if allowed(EXAMPLES[name], chain) and sum(t.differences for t in chain) <= DERIVATIVES:
            return name, chain


def run(ledger: Path, seconds: float, first: int) -> None:
    """Try compositions for so long, a line of the ledger for each."""
    lines = ledger.read_text(encoding="utf-8").splitlines() if ledger.exists() else []
    seed = json.loads(lines[-1])["seed"] + 1 if lines else first
    until = time.monotonic() + seconds
    with ledger.open("a", encoding="utf-8") as out:
        while time.monotonic() < until:
            name, chain = draw(seed)
            error = ""
            try:
                with at_most(LONGEST):
                    check(EXAMPLES[name], chain)
            except Exception as failure:  # whatever is wrong with one, the hunt goes on
                error = f"{type(failure).__name__}: {str(failure)[:400]}"
                print(seed, name, [t.name for t in chain], error, flush=True)
            entry = {"seed": seed, "program": name, "chain": [t.name for t in chain], "failed": error}
            out.write(json.dumps({**entry, "revision": revision()}) + "\n")
            out.flush()
            seed += 1


def log(ledgers: list[Path]) -> str:
    """What was tried and what failed, in a page."""
    entries = [json.loads(line) for path in ledgers for line in path.read_text(encoding="utf-8").splitlines()]
    lengths = Counter(len(e["chain"]) for e in entries)
    within = Counter(name for e in entries for name in e["chain"])
    pairs = {(inner, outer) for e in entries for inner, outer in zip(e["chain"], e["chain"][1:], strict=False)}
    triples = {tuple(e["chain"][i : i + 3]) for e in entries for i in range(len(e["chain"]) - 2)}
    failed = [e for e in entries if e["failed"]]
    lines = [
        head(),
        "",
        "compositions of transforms: against differences and stacked calls; compiled, by the reference, without jit",
        f"{len(entries)} compositions over {len({e['program'] for e in entries})} programs",
        "of length " + ", ".join(f"{n}: {count}" for n, count in sorted(lengths.items())),
        f"{len(pairs)} pairs and {len(triples)} triples of {len(TRANSFORMS)} transforms stood next to each other",
        "",
        *(f"{name:24} {count}" for name, count in sorted(within.items())),
        "",
        f"{len(failed)} failed",
        *(f"seed {e['seed']}: {e['program']}, {' then '.join(e['chain'])}: {e['failed']}" for e in failed),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run(Path(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else 0)
    else:
        print(log([Path(name) for name in sys.argv[2:]]), end="")
