"""Object code in files, shared by processes: that of programs where `config.cache_dir` says, and by default none; that
of the kernels which all programs share (products of matrices, transposes, the entry, the pool of threads) in the user's
cache or where `config.kernel_dir` says, so that a machine compiles them once.

A file is called after the hash of everything that its code depends on, so none is ever stale. It is written under
another name and moved into place, so none is ever half there; it carries a digest of its name and contents, and what
does not match, as a file that was put in another's place, is removed and compiled again. Files are code that this
process will run: they are neither read nor written in a folder that somebody else could write to.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from tracer.settings import config

_MAGIC: Final = b"tracer object 2\n"
_DIGEST: Final = 32
_SUFFIX: Final = ".object"
_ROUND: Final = 32  # files written from one look at what other processes wrote to the next
_KEPT: Final = 0.8  # of the limit, once it is passed
_OLD: Final = 3600.0  # seconds after which a file under another name was left behind by a process that died


class Folder:
    """One directory of object code. setting: the one that names it; None where nobody did: nobody is told that it is
    not used."""

    def __init__(self, path: Path, setting: str | None = "cache_dir") -> None:
        self.path = path
        self._setting = setting
        self._written = 0
        self._size = 0  # as far as this process knows
        self._is_usable = self._prepare()

    def read(self, key: str) -> bytes | None:
        """The object code under a key; None where there is none, or none that is whole."""
        if not self._is_usable:
            return None
        path = self.path / f"{key}{_SUFFIX}"
        try:
            contents = _contents(path)
        except OSError:
            return None
        if contents is None:
            return None
        payload = _payload(key, contents)
        with suppress(OSError):
            if payload is None:
                path.unlink()
            else:
                os.utime(path)  # the files used last are kept
        return payload

    def write(self, key: str, payload: bytes) -> None:
        """Keep object code under a key. A full or read-only disk is no reason to fail."""
        if not self._is_usable:
            return
        with suppress(OSError):
            descriptor, name = tempfile.mkstemp(".new", "", self.path)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(_MAGIC + _digest(key, payload) + payload)
                os.replace(name, self.path / f"{key}{_SUFFIX}")
            except BaseException:
                os.unlink(name)
                raise
            self._size += len(payload)
            if self._written % _ROUND == 0 or self._size > config.cache_size:
                self._size = self._shrink(config.cache_size)
            self._written += 1

    def _prepare(self) -> bool:
        """Make the directory, for this user alone; whether it can be trusted."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = self.path.stat()
        except OSError as error:
            return self._refuse(str(error))
        if not _is_ours(found):
            return self._refuse(f"other users may write to {self.path}, and what lies there is run")
        return True

    def _refuse(self, why: str) -> bool:
        if self._setting is not None:
            warnings.warn(f"config.{self._setting} is not used: {why}", RuntimeWarning, stacklevel=2)
        return False

    def _files(self) -> Iterator[tuple[float, int, Path]]:
        """When each file was last used, its size, its path."""
        for entry in os.scandir(self.path):
            with suppress(OSError):
                found = entry.stat(follow_symlinks=False)
                yield found.st_mtime, found.st_size, Path(entry.path)

    def _shrink(self, limit: int) -> int:
        """Remove what was used longest ago until the rest is well within the limit; how many bytes that is."""
        files = sorted(self._files(), key=lambda file: file[:2])
        newest = files[-1][0] if files else 0.0
        total = sum(size for _, size, _ in files)
        wanted = total if total <= limit else int(limit * _KEPT)
        for used, size, path in files:
            left_behind = path.suffix == ".new" and newest - used > _OLD
            if left_behind or (total > wanted and path.suffix == _SUFFIX):
                path.unlink(missing_ok=True)
                total -= size
        return total


_FLAGS: Final = ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY")  # a pipe under a file's name keeps nobody waiting


def _contents(path: Path) -> bytes | None:
    """What is in a file; None where it is no file, or others could have written it."""
    descriptor = os.open(path, sum((getattr(os, name, 0) for name in _FLAGS), os.O_RDONLY))
    try:
        found = os.fstat(descriptor)
        if not (stat.S_ISREG(found.st_mode) and _is_ours(found)):
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def _is_ours(found: os.stat_result) -> bool:
    """Whether nobody else can write there."""
    if not hasattr(os, "geteuid"):
        return True  # Windows: folders of a user are the user's
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _payload(key: str, contents: bytes) -> bytes | None:
    start = len(_MAGIC) + _DIGEST
    payload = contents[start:]
    whole = contents[: len(_MAGIC)] == _MAGIC
    return payload if whole and _digest(key, payload) == contents[len(_MAGIC) : start] else None


def _digest(key: str, payload: bytes) -> bytes:
    found = hashlib.blake2b(key.encode() + b"\n", digest_size=_DIGEST)
    found.update(payload)
    return found.digest()


_folders: dict[Path, Folder] = {}


def folder() -> Folder | None:
    """The directory that the settings name; None where they name none."""
    path = config.cache_dir
    return None if path is None else _known(path, "cache_dir")


def kernel_folder() -> Folder | None:
    """The directory of what all programs share."""
    path = config.kernel_dir
    if path is None:
        return folder()
    if isinstance(path, Path):
        return _known(path, "kernel_dir")
    caches, usual = os.environ.get("XDG_CACHE_HOME", ""), Path(path)
    try:
        return _known(Path(caches, *usual.parts[2:]) if Path(caches).is_absolute() else usual.expanduser(), None)
    except RuntimeError:  # the user has no home
        return None


def _known(path: Path, setting: str | None) -> Folder:
    if path not in _folders:
        _folders[path] = Folder(path, setting)
    return _folders[path]
