"""Muon's steps of matrices without elements."""

from __future__ import annotations

import pytest

import tracer.numpy as tnp
from tracer import optim


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_muon_steps_matrices_without_elements(shape: tuple[int, ...]) -> None:
    rule, x = optim.muon(0.1), tnp.zeros(shape)
    updates, _ = rule.update(x, rule.init(x), x)
    assert updates.shape == shape
