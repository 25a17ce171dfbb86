"""Object code by what it depends on."""

from __future__ import annotations

import hashlib
from collections import OrderedDict

from tracer.codegen.llvm.jit import compile_object
from tracer.codegen.llvm.machine import machine_key
from tracer.runtime.locks import ForkSafeLock


class ObjectCache:
    """Object code by the text it was made of, LLVM's version and the machine's features.

    It lives in memory. Object code binds what is outside it by name alone, so the same key may lead to a file.
    """

    def __init__(self, capacity: int = 512) -> None:
        self._capacity = capacity
        self._objects: OrderedDict[bytes, bytes] = OrderedDict()
        self._lock = ForkSafeLock()

    def get(self, text: str) -> bytes:
        """The text's object code, compiled now if it has not been before."""
        key = hashlib.blake2b(f"{machine_key()}\0{text}".encode(), digest_size=20).digest()
        with self._lock:
            found = self._objects.get(key)
            if found is not None:
                self._objects.move_to_end(key)
                return found
        made = compile_object(text)
        with self._lock:
            self._objects[key] = made
            while len(self._objects) > self._capacity:
                self._objects.popitem(last=False)
        return made

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._objects.clear()

    def __len__(self) -> int:
        return len(self._objects)


objects = ObjectCache()
