"""The version of the project: part of the key of object code that is kept in files."""

from typing import Final

VERSION: Final = "0.1.0"
"""As in pyproject.toml."""
