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
from typing import Any

from aeron_spark._native._lib import ffi, lib
from aeron_spark._native.callback import Callbacks, notifying
from aeron_spark._native.check import check
from aeron_spark.closing import Closing
from aeron_spark.errors import ClosedError, UsageError

_roots: weakref.WeakValueDictionary[int, Handle] = weakref.WeakValueDictionary()
# Of roots until their release: C calls them from its own threads, also where Python forgot to close the root.
_called: set[Callbacks] = set()
_numbers = itertools.count()


class Handle(Closing):
    """Owner of one C object and of the handles made from it."""

    _pointer: Any = None

    def __init__(
        self,
        pointer: Any,
        release: Callable[[Any], object],
        parent: Handle | None = None,
        *,
        callbacks: Callbacks | None = None,
        is_gone: Callable[[Any], bool] | None = None,
    ) -> None:
        """`callbacks`: what threads of the C object call, until its release. `is_gone`: C has closed it by itself."""
        self._release = release
        self._parent = parent
        self._is_gone = is_gone
        self._children: weakref.WeakValueDictionary[int, Handle] = weakref.WeakValueDictionary()
        self._lock = threading.RLock()
        self._notified: Callbacks | None = callbacks if parent is None else parent._notified
        self._pid = os.getpid()
        self._number = next(_numbers)
        self._pointer = pointer
        (_roots if parent is None else parent._children)[self._number] = self
        if callbacks is not None:
            _called.add(callbacks)

    def _use(self) -> _Use:
        """Pointer for the length of a `with` block; ClosedError if it is closed."""
        return _Use(self)

    def _acquire(self) -> Any:
        """Pointer, with the lock held, which the caller releases."""
        if self._pid != os.getpid():
            raise UsageError(f"{self!r} belongs to process {self._pid}; open another one after a fork")
        self._refuse_in_handler()
        try:
            self._lock.acquire()
            pointer = self._pointer
        except BaseException:
            # Ctrl-C comes before the lock is acquired, or after.
            if self._lock._is_owned():  # type: ignore[attr-defined]
                self._lock.release()
            raise
        if pointer is None:
            self._lock.release()
            raise ClosedError(f"{self!r} is closed")
        return pointer

    @property
    def is_closed(self) -> bool:
        """True once `close()` was called, or its client was closed by a fatal error: driver gone, or keepalives too late.

        It is still to be closed then. An image is closed, too, when its publisher has gone; a counter, when the driver
        takes it back.
        """
        pointer = self._pointer
        if pointer is None or self._is_gone is None:
            return pointer is None
        if self._is_notified():  # until the handler returns, nobody frees the object
            return self._is_gone(pointer)
        try:
            with self._use() as pointer:
                return self._is_gone(pointer)
        except ClosedError:
            return True

    def _refuse_gone(self, pointer: Any) -> None:
        """ClosedError with the reason where a fatal error of its client has closed the object. Within a call of it."""
        client = self._lost_client(pointer)
        if client is not None:
            check(lib.as_client_next_session_id(client, 0, ffi.new("int32_t *")))

    def _lost_client(self, pointer: Any) -> Any:
        """C's client, if a fatal error has closed it, and the object with it.

        Without the lock of the client, which other calls hold while they wait for the driver. It stays until this call has
        ended: a client closes what was made from it first.
        """
        if self._is_gone is None or not self._is_gone(pointer):
            return None
        root = self
        while root._parent is not None:
            root = root._parent
        client = root._pointer
        return client if client is not None and lib.as_client_is_closed(client) else None

    def close(self) -> None:
        """Close what was made from this object, then the object; again is harmless."""
        if self._pid != os.getpid():
            self._pointer = None
            return
        self._refuse_in_handler()
        if self._is_in_call():
            raise UsageError(f"{self!r}: close() inside one of its own calls; return from the handler first")
        pointer = None
        try:
            with self._lock:
                pointer, self._pointer = self._pointer, None
            if pointer is None:
                return
            # Without the lock: a call of a child that is still in progress may want to use this object, and gets ClosedError.
            for _, child in sorted(self._children.items(), reverse=True):
                child.close()
        except BaseException:
            if pointer is not None:
                self._pointer = pointer  # the next close releases it
            raise
        self._release(pointer)
        (_roots if self._parent is None else self._parent._children).pop(self._number, None)
        if self._parent is None and self._notified is not None:
            _called.discard(self._notified)

    def _is_in_call(self) -> bool:
        """This thread is inside a call of this object, or of one that was made from it."""
        return self._lock._is_owned() or any(  # type: ignore[attr-defined]
            child._is_in_call() for child in list(self._children.values())
        )

    def _is_notified(self) -> bool:
        """This thread is inside a handler that the C object calls by itself, and that it waits for."""
        return (threading.get_ident(), self._notified) in notifying

    def _refuse_in_handler(self) -> None:
        if notifying and self._is_notified():
            raise UsageError(
                f"{self!r} is used by a handler of its own client, which waits for the handler: do it after the handler"
            )

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
        return self._handle._acquire()

    @property
    def __exit__(self) -> Callable[..., None]:  # noqa: PLE0302, PYI036 - the property, not what it gives
        """That of the lock, which is C: a function of Python may be interrupted before it has released anything."""
        return self._handle._lock.__exit__


@atexit.register
def _close_roots() -> None:
    for _, handle in sorted(_roots.items(), reverse=True):
        handle.close()
