"""`python -m tracer cache`: the folders of object code, their sizes, and how to empty them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracer.runtime.native import disk_cache


@dataclass(frozen=True, slots=True)
class CacheFolder:
    """A folder of object code. setting: the name of the setting that moves it. size: bytes of its `files`."""

    setting: str
    path: Path
    files: int
    size: int

    def __str__(self) -> str:
        return f"{self.setting:<11} {self.path}: {self.files:,} files, {self.size / 1e6:,.1f} MB"


def folders() -> Iterator[tuple[CacheFolder, disk_cache.Folder]]:
    """Yield the folders in use: of programs, where `config.cache_dir` names one, and of shared kernels."""
    programs, kernels = disk_cache.folder(), disk_cache.kernel_folder()
    for setting, folder in (("cache_dir", programs), ("kernel_dir", kernels)):
        if folder is not None and (setting == "cache_dir" or folder is not programs):
            files, size = folder.count()
            yield CacheFolder(setting, folder.path, files, size), folder


def add_to(commands: Any) -> None:
    """Add the command to a parser's commands."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "cache", help="show or clear the folders of compiled code", description="Show the folders of compiled code."
    )
    parser.add_argument("--clear", action="store_true", help="remove the files: later calls compile again")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print each folder; with `--clear`, remove its files. Returns the exit status: 1 where a file stays."""
    status, found = 0, list(folders())
    for shown, folder in found:
        print(shown)
        if options.clear:
            left = folder.clear()
            print(f"{'':<11} {shown.files - left:,} files removed" + (f", {left:,} could not be" if left else ""))
            status = max(status, int(left > 0))
    if not found:
        print("no folder is in use: set config.cache_dir, or TRACER_CACHE_DIR in the environment")
    return status
