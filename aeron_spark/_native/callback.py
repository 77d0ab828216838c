"""Calls from C into Python.

A `Callbacks` object is the `context` of a C call or of a C object. A Python function that raises must not raise through C:
its exception is kept, C is asked to stop where it can, and the outer call raises it (`reraise`). Handlers that run on a
native thread have no outer call; their exceptions go to `sys.unraisablehook`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from aeron_spark._native._lib import ffi, lib
from aeron_spark._native.check import error, string

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _extern(error: Any = None) -> Callable[[_Function], _Function]:
    """Make a function the Python end of the callback of its name; C gets `error` when it raises."""
    register = ffi.def_extern(error=error)

    def decorate(function: _Function) -> _Function:
        register(function)
        return function

    return decorate


# The threads that are inside `notify`, with whose.
notifying: set[tuple[int, Callbacks]] = set()


class Callbacks:
    """The Python end of C callbacks; keep it as long as C may call."""

    def __init__(self, **functions: Callable[..., Any] | None) -> None:
        self.context = ffi.new_handle(self)
        self._functions = functions
        self._raised: BaseException | None = None

    def call(self, name: str, *arguments: Any, on_error: Any = None) -> Any:
        """Call the function of that name; `on_error` is returned when it raises, or raised before."""
        function = self._functions.get(name)
        if function is None:
            return None
        if self._raised is not None:
            return on_error
        try:
            return function(*arguments)
        except BaseException as raised:  # noqa: BLE001 - raised again by the outer call
            self._raised = raised
            return on_error

    def notify(self, name: str, *arguments: Any) -> None:
        """Call a function that belongs to no outer call; cffi hands what it raises to `sys.unraisablehook`."""
        function = self._functions.get(name)
        if function is None:
            return
        mark = threading.get_ident(), self
        notifying.add(mark)
        try:
            function(*arguments)
        finally:
            notifying.discard(mark)

    def check(self, result: int) -> bool:
        """As `check.check`; what a callback raised comes first."""
        failure = error(result) if result < 0 else None
        self.reraise()
        if failure is not None:
            raise failure
        return bool(result == lib.AS_OK)

    def reraise(self) -> None:
        """Raise what a callback raised, once."""
        raised, self._raised = self._raised, None
        if raised is not None:
            raise raised


@_extern()
def asp_on_error(context: Any, result: int, code: int, text: Any) -> None:
    """Tell a failure noticed by a client's conductor."""
    ffi.from_handle(context).notify("on_error", result, code, text)


@_extern()
def asp_on_available_image(context: Any, _subscription: Any, image: Any) -> None:
    """Tell that a publisher's stream appeared."""
    ffi.from_handle(context).notify("on_available_image", image)


@_extern()
def asp_on_unavailable_image(context: Any, _subscription: Any, image: Any) -> None:
    """Tell that a publisher's stream is gone."""
    ffi.from_handle(context).notify("on_unavailable_image", image)


@_extern()
def asp_on_publication_error(  # noqa: PLR0917 - the C signature
    context: Any, registration_id: int, session_id: int, stream_id: int, code: int, text: Any
) -> None:
    """Tell that a subscriber or receiver rejected a publication's stream."""
    ffi.from_handle(context).notify("on_publication_error", registration_id, session_id, stream_id, code, text)


@_extern(error=lib.AS_ACTION_ABORT)
def asp_on_message(context: Any, data: Any, length: int, header: Any) -> int:
    """Hand one message to a poll's handler."""
    action = ffi.from_handle(context).call("on_message", data, length, header, on_error=lib.AS_ACTION_ABORT)
    return lib.AS_ACTION_CONTINUE if action is None else int(action)


@_extern()
def asp_on_error_entry(  # noqa: PLR0917 - the C signature
    context: Any, count: int, first_ms: int, last_ms: int, text: Any, text_length: int
) -> None:
    """Hand one entry of an error log over."""
    ffi.from_handle(context).call("on_error_entry", count, first_ms, last_ms, text, text_length)


@_extern()
def asp_on_loss_row(context: Any, row: Any) -> None:
    """Hand one row of a loss report over."""
    ffi.from_handle(context).call("on_loss_row", row)


@_extern(error=False)
def asp_on_recording(context: Any, recording: Any) -> bool:
    """Hand one recording of a listing over; False ends the listing."""
    return ffi.from_handle(context).call("on_recording", recording, on_error=False) is not False


@_extern(error=False)
def asp_on_recording_subscription(context: Any, subscription_id: int, stream_id: int, channel: Any) -> bool:
    """Hand one recording subscription of a listing over; False ends the listing."""
    return (
        ffi.from_handle(context).call("on_subscription", subscription_id, stream_id, channel, on_error=False)
        is not False
    )


@_extern()
def asp_on_signal(context: Any, signal: Any) -> None:
    """Hand a recording signal to a control session."""
    ffi.from_handle(context).call("on_signal", signal)


@_extern()
def asp_on_archive_error(context: Any, result: int, code: int, correlation_id: int, text: Any) -> None:
    """Tell an archive client an error that none of its calls waits for."""
    ffi.from_handle(context).call("on_archive_error", result, code, correlation_id, string(text))


@_extern(error=-1)
def asp_on_challenge(context: Any, challenge: Any, length: int, credentials: Any, capacity: int) -> int:
    """Answer an archive's challenge; -1 without an answer."""
    answer = ffi.from_handle(context).call("on_challenge", bytes(ffi.buffer(challenge, length)), on_error=None)
    if answer is None or len(answer) > capacity:
        return -1
    ffi.memmove(credentials, answer, len(answer))
    return len(answer)


@_extern()
def asp_on_recording_event(context: Any, event: Any) -> None:
    """Hand one event of a recording events stream over."""
    ffi.from_handle(context).call("on_recording_event", event)


@_extern()
def asp_on_live_joined(context: Any) -> None:
    """Tell that a persistent subscription is live."""
    ffi.from_handle(context).call("on_live_joined")


@_extern()
def asp_on_live_left(context: Any) -> None:
    """Tell that a persistent subscription has lost its live stream."""
    ffi.from_handle(context).call("on_live_left")


@_extern()
def asp_on_stream_error(context: Any, result: int, code: int, text: Any) -> None:
    """Tell what went wrong with a persistent subscription."""
    ffi.from_handle(context).call("on_stream_error", result, code, string(text))


@_extern()
def asp_on_termination(context: Any) -> None:
    """Tell that somebody asked the embedded driver to end."""
    ffi.from_handle(context).notify("on_termination")


@_extern(error=False)
def asp_on_progress(context: Any, bytes_done: int) -> bool:
    """Report the progress of long work; False ends it."""
    return ffi.from_handle(context).call("on_progress", bytes_done, on_error=False) is not False


@_extern()
def asp_on_text(context: Any, text: Any) -> None:
    """Pass on a line that a tool reports."""
    ffi.from_handle(context).call("on_text", text)
