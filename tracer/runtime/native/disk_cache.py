"""Object code in files that processes share.

Programs are kept where `config.cache_dir` says, and by default not at all. Kernels that all programs share (matrix
products, transposes, the entry, the thread pool) and elementwise kernels outside `jit` are kept in the user's cache.
`config.kernel_dir` names another folder. So a machine compiles them once.

A file is named by the hash of everything that its code depends on, so none is ever stale. It is written under another
name and moved into place, so none is ever incomplete. It carries a digest of its name and contents; a file that does
not match, for instance under another's name, is removed and compiled again. This process runs the code in the files. So
none is read or written in a folder that another user could write to.
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
_SCAN_EVERY: Final = 32  # files written between scans for the files of other processes
_KEPT: Final = 0.8  # of the limit, once it is exceeded
_OLD: Final = 3600.0  # seconds after which a file under another name was left behind by a process that died


class Folder:
    """One directory of object code.

    setting: the setting that names it. None for a default directory, which is left unused without a warning if it
    cannot be trusted.
    """

    def __init__(self, path: Path, setting: str | None = "cache_dir") -> None:
        self.path = path
        self._setting = setting
        self._written = 0
        self._size = 0  # bytes of all files, as far as this process knows
        self._is_refused = False
        self._prepare()

    def read(self, key: str) -> bytes | None:
        """Return the object code under a key; None if it is missing or damaged."""
        if not self._is_trusted():
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
        """Keep object code under a key. A full or read-only disk is not an error."""
        if not self._is_trusted():
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
            if self._written % _SCAN_EVERY == 0 or self._size > config.cache_size:
                self._size = self._shrink(config.cache_size)
            self._written += 1

    def count(self) -> tuple[int, int]:
        """Return the number of files of object code, and their bytes."""
        sizes = [size for _, size, path in self._files() if path.suffix == _SUFFIX] if self._is_trusted() else []
        return len(sizes), sum(sizes)

    def clear(self) -> int:
        """Remove the files of object code. Returns the number of files that could not be removed."""
        left = 0
        for _, _, path in list(self._files()) if self._is_trusted() else ():
            if path.suffix == _SUFFIX:
                try:
                    path.unlink(missing_ok=True)
                except OSError:
                    left += 1
        self._size = 0
        return left

    def _prepare(self) -> None:
        """Make the directory, for this user alone."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            self._refuse(str(error))
        else:
            self._is_trusted()

    def _is_trusted(self) -> bool:
        """Whether the directory is there and only this user can write to it. It may be another one than before."""
        if self._is_refused:
            return False
        try:
            found = self.path.stat()
        except OSError:
            return False
        if not _is_ours(found):
            self._refuse(f"other users may write to {self.path}, and what lies there is run")
            return False
        return True

    def _refuse(self, why: str) -> None:
        self._is_refused = True
        if self._setting is not None:
            warnings.warn(f"config.{self._setting} is not used: {why}", RuntimeWarning, stacklevel=2)

    def _files(self) -> Iterator[tuple[float, int, Path]]:
        """Yield the time of last use, the size and the path of each file."""
        for entry in os.scandir(self.path):
            with suppress(OSError):
                found = entry.stat(follow_symlinks=False)
                yield found.st_mtime, found.st_size, Path(entry.path)

    def _shrink(self, limit: int) -> int:
        """Remove the least recently used files until the size is well within the limit; return the remaining bytes."""
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


_FLAGS: Final = ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY")  # opening a pipe under a file's name must not block


def _contents(path: Path) -> bytes | None:
    """Return a file's contents; None if it is not a regular file, or another user could have written it."""
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
    """Whether only this user can write there."""
    if not hasattr(os, "geteuid"):
        return True  # on Windows a user's folders are private
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
    """Return the directory that the settings name, or None."""
    path = config.cache_dir
    return None if path is None else _known(path, "cache_dir")


def kernel_folder() -> Folder | None:
    """Return the directory of the kernels that all programs share."""
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
