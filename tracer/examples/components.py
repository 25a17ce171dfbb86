"""Principal components of handwritten digits by the singular value decomposition."""

from __future__ import annotations

from typing import NamedTuple

import tracer
import tracer.numpy as tnp
from tracer import jit


class Components(NamedTuple):
    """The directions along which data vary most.

    mean: [d]; directions: [count, d], of length 1 and at right angles; variances: [count], along each direction;
    shares: [count], parts of the whole variance.
    """

    mean: tracer.Array
    directions: tracer.Array
    variances: tracer.Array
    shares: tracer.Array

    def project(self, data: tracer.Array) -> tracer.Array:
        """Return the coordinates of data [n, d] along the directions, [n, count]."""
        return (data - self.mean) @ self.directions.T

    def restore(self, coordinates: tracer.Array) -> tracer.Array:
        """Return the data [n, d] that have these coordinates [n, count], and the mean along all other directions."""
        return coordinates @ self.directions + self.mean


@jit(static_argnames="count")
def principal_components(data: tracer.Array, *, count: int) -> Components:
    """Return the `count` first principal components of data, float [n, d], one row an observation.

    The largest entry of a direction is positive, so that signs do not depend on LAPACK.
    """
    mean = tnp.mean(data, axis=0)
    _, sizes, directions = tnp.linalg.svd(data - mean, full_matrices=False)
    variances = sizes**2 / (len(data) - 1)
    largest = tnp.take_along_axis(directions, tnp.argmax(tnp.abs(directions), axis=1)[:, None], axis=1)
    directions = directions * tnp.sign(largest)
    return Components(mean, directions[:count], variances[:count], (variances / tnp.sum(variances))[:count])
