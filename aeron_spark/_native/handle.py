"""Base of everything that owns a C object: close once, keep the parent, never use after close.

Every call into C holds the object's lock (`with self._use() as pointer`), so an object is used by one thread at a time and
`close()` from another thread waits for the call in progress. Objects without a parent that are still open when the
interpreter ends are closed then, since a driver's directory would outlive the process. An object does not survive a fork:
the child gets a UsageError and leaves the C object alone.
"""

from __future__ import annotations

import atexit
import itertools
import os
import threading
import warnings
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any

from aeron_spark.closing import Closing
from aeron_spark.errors import ClosedError, UsageError

_roots: weakref.WeakValueDictionary[int, Handle] = weakref.WeakValueDictionary()
_numbers = itertools.count()


class Handle(Closing):
    """Owner of one C object and of the handles made from it."""

    _pointer: Any = None

    def __init__(self, pointer: Any, release: Callable[[Any], object], parent: Handle | None = None) -> None:
        self._release = release
        self._parent = parent
        self._children: weakref.WeakValueDictionary[int, Handle] = weakref.WeakValueDictionary()
        self._lock = threading.RLock()
        self._calls = 0
        self._pid = os.getpid()
        self._number = next(_numbers)
        self._pointer = pointer
        (_roots if parent is None else parent._children)[self._number] = self

    def _use(self) -> _Use:
        """Pointer for the length of a `with` block; ClosedError if it is closed."""
        return _Use(self)

    @property
    def is_closed(self) -> bool:
        """True once `close()` was called."""
        return self._pointer is None

    def close(self) -> None:
        """Close what was made from this object, then the object; again is harmless."""
        if self._pid != os.getpid():
            self._pointer = None
            return
        with self._lock:
            if self._calls:
                raise UsageError(f"{self!r}: close() inside one of its own calls; return from the handler first")
            pointer, self._pointer = self._pointer, None
        if pointer is None:
            return
        # Without the lock: a call of a child that is still in progress may want to use this object, and gets ClosedError.
        for _, child in sorted(self._children.items(), reverse=True):
            child.close()
        self._release(pointer)
        (_roots if self._parent is None else self._parent._children).pop(self._number, None)

    def __del__(self) -> None:
        if self._pointer is not None and self._pid == os.getpid():
            warnings.warn(f"{self!r} was never closed", ResourceWarning, source=self, stacklevel=2)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}{' closed' if self._pointer is None else ''}>"


class _Use:
    __slots__ = ("_handle",)

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def __enter__(self) -> Any:
        handle = self._handle
        if handle._pid != os.getpid():
            raise UsageError(f"{handle!r} belongs to process {handle._pid}; open another one after a fork")
        handle._lock.acquire()
        if handle._pointer is None:
            handle._lock.release()
            raise ClosedError(f"{handle!r} is closed")
        handle._calls += 1
        return handle._pointer

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._handle._calls -= 1
        self._handle._lock.release()


@atexit.register
def _close_roots() -> None:
    for _, handle in sorted(_roots.items(), reverse=True):
        handle.close()
