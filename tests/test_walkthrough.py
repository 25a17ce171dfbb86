"""docs/design/walkthrough.md shows each stage as the compiler produces it now."""

from __future__ import annotations

import pytest

from tools.walkthrough import BLOCK, MACHINE, TARGET, written


def test_the_walkthrough_shows_every_stage_as_it_is_now() -> None:
    page = TARGET.read_text(encoding="utf-8")
    assert written(page) == page, "run python -m tools.walkthrough"


def test_the_blocks_of_the_machine_are_left_as_they_are() -> None:
    page = TARGET.read_text(encoding="utf-8")
    names = [match[1] for match in BLOCK.finditer(page)]
    assert names == ["traced", "transformed", "passes", "optimized", "loops", "loop_passes", "mapped", *MACHINE]
    other = page.replace("vector_bits=256\n", "vector_bits=128\n")
    assert written(other) == other


def test_a_block_that_is_out_of_date_is_found() -> None:
    page = TARGET.read_text(encoding="utf-8")
    assert written(page.replace("-tnp.mean(", "tnp.mean(", 1)) != page.replace("-tnp.mean(", "tnp.mean(", 1)


def test_a_page_without_python_is_refused() -> None:
    with pytest.raises(ValueError, match="has no Python block"):
        written("# Empty\n")
