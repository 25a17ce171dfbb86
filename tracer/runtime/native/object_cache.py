"""Cache of object code in memory, and in files where settings say so."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable

from tracer.codegen.llvm.toolchain.object_code import compile_object
from tracer.codegen.llvm.toolchain.target import machine_key
from tracer.runtime.native.disk_cache import Folder, folder, kernel_folder
from tracer.runtime.system.locks import ForkSafeLock
from tracer.version import VERSION


class ObjectCache:
    """Object code by its text, the project's and LLVM's versions and the machine's features.

    Object code binds outside symbols by name alone, so another process may load it. compiled: how often text was
    compiled.
    """

    def __init__(self, capacity: int = 512) -> None:
        self.compiled = 0
        self._capacity = capacity
        self._objects: OrderedDict[str, bytes] = OrderedDict()
        self._lock = ForkSafeLock()

    def get(self, text: str, opt: int = 2, *, kept: bool = True) -> bytes:
        """Return a program's object code, compiled now if it is not cached.

        opt: LLVM's code generation level. kept: whether files may keep it.
        """
        return self._get(text, opt, folder if kept else lambda: None)

    def kernel(self, text: str, opt: int = 2) -> bytes:
        """Return the object code of text that all programs share, compiled now if it is not cached."""
        return self._get(text, opt, kernel_folder)

    def _get(self, text: str, opt: int, folder: Callable[[], Folder | None]) -> bytes:
        described = f"{VERSION}\0{machine_key()}\0{opt}\0{text}"
        key = hashlib.blake2b(described.encode(), digest_size=20).hexdigest()
        with self._lock:
            found = self._objects.get(key)
            if found is not None:
                self._objects.move_to_end(key)
                return found
        files = folder()
        made = None if files is None else files.read(key)
        if made is None:
            made = compile_object(text, opt=opt)
            self.compiled += 1
            if files is not None:
                files.write(key, made)
        with self._lock:
            self._objects[key] = made
            while len(self._objects) > self._capacity:
                self._objects.popitem(last=False)
        return made

    def clear(self) -> None:
        """Forget all object code but the files."""
        with self._lock:
            self._objects.clear()

    def __len__(self) -> int:
        return len(self._objects)


objects = ObjectCache()
