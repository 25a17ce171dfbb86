"""Long calls of libraries beside the main thread, which waits for them and hears Ctrl-C meanwhile.

NumPy's and SciPy's calls cannot be stopped. An interrupted one runs to its end on a thread of its own, and nobody reads
its result. Cutting products in pieces instead changed bits: OpenBLAS takes other kernels for the last columns of a
piece in float64.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any


def beside(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function such that the main thread runs it on another thread, in a copy of its context."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            return function(*args, **kwargs)
        results: list[Any] = []
        errors: list[BaseException] = []
        context = contextvars.copy_context()

        def run() -> None:
            try:
                results.append(context.run(function, *args, **kwargs))
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join()
        if errors:
            raise errors[0]
        return results[0]

    return call
