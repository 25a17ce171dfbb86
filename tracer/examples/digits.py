"""Handwritten digits: 1,797 real 8×8 grey images, and their split into training and held-out data.

The data are in `data/digits.npz`; their source and licence are in `data/README.md`.
"""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

CLASSES = 10
PIXELS = 64
_FULL_INK = 16.0  # a pixel counts the set pixels of a 4×4 block of the scan: 0..16


class Digits(NamedTuple):
    """Images of digits and their labels.

    images: float32 [n, 64], 0 for paper and 1 for ink, rows of 8×8 images; labels: int64 [n], the digit, 0..9.
    """

    images: NDArray[np.float32]
    labels: NDArray[np.int64]


class Split(NamedTuple):
    """Digits to train on, and held-out digits to test on."""

    train: Digits
    held_out: Digits


def load() -> Digits:
    """Return all 1,797 digits, in the order of the source.

    >>> digits = load()
    >>> digits.images.shape, digits.labels[:5].tolist()
    ((1797, 64), [0, 1, 2, 3, 4])
    """
    with (files(__package__) / "data" / "digits.npz").open("rb") as stream, np.load(stream) as archive:
        images, labels = archive["images"], archive["labels"]
    return Digits(images.reshape(-1, PIXELS).astype(np.float32) / np.float32(_FULL_INK), labels.astype(np.int64))


def split(held_out: int = 360, *, seed: int = 0) -> Split:
    """Shuffle the digits and hold `held_out` of them back, equally for equal seeds on every machine.

    The shuffle puts images by one writer on both sides, so held-out accuracy is for new images by known writers. Raises
    ValueError unless 0 < held_out < 1797.

    >>> train, held_out = split()
    >>> len(train.labels), len(held_out.labels)
    (1437, 360)
    """
    digits = load()
    count = len(digits.labels)
    if not 0 < held_out < count:
        raise ValueError(f"held_out must be between 1 and {count - 1}, got {held_out}")
    # RandomState's stream is frozen; default_rng's may change between NumPy versions (NEP 19).
    order = np.random.RandomState(seed).permutation(count)
    test, train = order[:held_out], order[held_out:]
    return Split(Digits(digits.images[train], digits.labels[train]), Digits(digits.images[test], digits.labels[test]))
