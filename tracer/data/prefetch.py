"""`ahead`: elements of any iterator, made by a thread while earlier ones are in use."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeVar

from tracer.errors import ArgumentError, message
from tracer.runtime.system.devices import device_put
from tracer.trace.source import here

T = TypeVar("T")

_WAIT: Final = 0.1  # seconds after which the thread looks whether the consumer is gone


def ahead(iterable: Iterable[T], depth: int = 2, device: Any = None) -> Iterator[T]:
    """Iterate over `iterable` with up to `depth` elements prepared by a thread.

    device: the device that arrays are put on, by the thread. The thread ends with the iterator; an exception that the
    iterable raises is raised by `next`, with its traceback. NumPy's gathers, decoders of images and compiled programs
    let other threads run. Raises ArgumentError for a depth below 1.

    >>> from tracer import data
    >>> list(data.ahead(range(3)))
    [0, 1, 2]
    """
    if depth < 1:
        raise ArgumentError(message(f"ahead{here()} prepares at least one element", f"got depth={depth!r}"))
    return _Ahead(iterable, depth, device)


class _End:
    """Last element of the queue: the exception that the iterable raised, or None."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


class _Ahead(Iterator[T]):
    """Iterator over a bounded queue that a thread fills. The thread does not keep the iterator alive."""

    def __init__(self, iterable: Iterable[T], depth: int, device: Any) -> None:
        self._box: queue.Queue[Any] = queue.Queue(depth)
        self._stop = threading.Event()
        self._over = False
        arguments = (iterable, self._box, self._stop, device)
        self._thread = threading.Thread(target=_fill, args=arguments, name="tracer.data", daemon=True)
        self._thread.start()

    def __next__(self) -> T:
        if self._over:
            raise StopIteration
        item = self._box.get()
        if isinstance(item, _End):
            self.close()
            if item.error is not None:
                raise item.error
            raise StopIteration
        return item  # type: ignore[no-any-return]

    def close(self) -> None:
        """End the thread."""
        self._over = True
        self._stop.set()
        self._thread.join()

    def __del__(self) -> None:
        self._stop.set()


def _fill(iterable: Iterable[Any], box: queue.Queue[Any], stop: threading.Event, device: Any) -> None:
    def put(item: Any) -> bool:
        while not stop.is_set():
            try:
                box.put(item, timeout=_WAIT)
            except queue.Full:
                continue
            return True
        return False

    iterator = None
    try:
        iterator = iter(iterable)
        for item in iterator:
            if not put(item if device is None else device_put(item, device)):
                break
        end = _End(None)
    except BaseException as error:
        end = _End(error)
    finally:
        close = getattr(iterator, "close", None)
        if close is not None:
            close()
    put(end)
