"""What the tables of names share: JAX's names as they are stored, and the parameters that ours do not take."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parent.parent


class Stored:
    """The public names of jax.numpy or jax.lax, as tools/jax_names.py wrote them, beside ours.

    version: JAX's. names: the parameters of every name. members: of its arrays, with those of jax.numpy.
    """

    def __init__(self, ours: ModuleType) -> None:
        folder = ours.__name__.rpartition(".")[2]
        stored = json.loads((ROOT / "tests" / folder / "jax_names.json").read_text(encoding="utf-8"))
        self.ours = ours
        self.version: str = stored["jax"]
        self.names: dict[str, list[str]] = stored["names"]
        self.members: list[str] = stored.get("members", [])

    def not_taken(self) -> dict[str, list[str]]:
        """The parameters of JAX's functions that ours of the same name do not have, each with those functions."""
        found: dict[str, list[str]] = {}
        for name, parameters in self.names.items():
            value = getattr(self.ours, name, None)
            if inspect.isfunction(value) and name in self.ours.__all__:
                for lacking in [p for p in parameters if p not in inspect.signature(value).parameters]:
                    found.setdefault(lacking, []).append(name)
        return found
