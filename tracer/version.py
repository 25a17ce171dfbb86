"""The version of the project, part of the key of cached object code."""

from typing import Final

VERSION: Final = "0.1.0"
"""As in pyproject.toml."""
