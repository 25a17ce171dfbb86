"""What a row of the comparison is: one computation, as each peer's user would write it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Arguments = Sequence[Any]
Maker = Callable[["World"], Callable[..., Any]]


@dataclass(frozen=True)
class World:
    """A peer's namespaces under the names that rows use. A peer without compilation has None for the rest."""

    name: str
    np: Any
    lax: Any = None
    random: Any = None
    nn: Any = None
    special: Any = None
    root: Any = None  # grad, vmap, jit ...


@dataclass(frozen=True)
class Row:
    """One computation.

    family: what it is about. arguments: NumPy arrays from a seeded generator. compiled: the function for a world with
    JAX's names, which the worker jits. others: by peer ("numpy", "numba", "torch"), how a user writes it there;
    `same` names peers for which `compiled` will do. tolerance: for comparing answers, relative to the largest value;
    None for rows whose answers differ by nature. settings: of tracer, for this row alone. without: peers that lack the
    function.
    """

    name: str
    family: str
    arguments: Callable[[], Arguments]
    compiled: Maker
    same: tuple[str, ...] = ()
    others: dict[str, Maker] = field(default_factory=dict)
    tolerance: float | None = 1e-4
    settings: Mapping[str, Any] = field(default_factory=dict)
    without: tuple[str, ...] = ()

    def maker(self, peer: str) -> Maker | None:
        """How the peer computes the row; None where it does not."""
        if peer in self.without:
            return None
        if peer in ("tracer", "jax") or peer in self.same:
            return self.compiled
        return self.others.get(peer)
