"""The seam to C: the stub, the enumerations, handles and callbacks."""

from __future__ import annotations

import gc
import inspect
import math
import multiprocessing
import signal
import subprocess
import sys
import threading
import warnings
import weakref
from contextlib import suppress
from pathlib import Path

import pytest

import aeron_spark
from aeron_spark import AeronError, Client, ClosedError, MediaDriver, UsageError, types
from aeron_spark._native._lib import lib
from aeron_spark._native.check import check, nanoseconds
from aeron_spark._native.handle import Handle

ROOT = Path(__file__).resolve().parents[2]


def test_stub_is_that_of_the_headers() -> None:
    native = ROOT / "aeron_spark" / "_native"
    written = subprocess.run(
        [
            sys.executable,
            native / "build_stub.py",
            ROOT / "driver_native" / "include",
            ROOT / "archive" / "include",
            native / "kernels",
        ],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert written == (native / "_lib.pyi").read_text("utf-8"), "run build_stub.py again"


@pytest.mark.parametrize(
    ("enumeration", "prefix"),
    [
        (types.Action, "AS_ACTION_"),
        (types.SourceLocation, "AS_SOURCE_"),
        (types.RecordingSignal, "AS_SIGNAL_"),
        (types.RecordChecksum, "AS_CHECKSUM_"),
        (types.Outcome, ""),
    ],
)
def test_enumerations_have_the_numbers_of_c(enumeration: type[types.Action], prefix: str) -> None:
    renamed = {
        "CLOSED": "AS_PUBLICATION_CLOSED",
        "ERROR": "AS_PUBLICATION_ERROR",
        "CRC_32": "CRC32",
        "CRC_32C": "CRC32C",
    }
    for member in enumeration:
        name = renamed.get(member.name, member.name)
        full = name if name.startswith("AS_") else f"{prefix or 'AS_'}{name}"
        assert getattr(lib, full) == member.value


def test_check_tells_done_from_later() -> None:
    assert check(lib.AS_OK) is True
    assert check(lib.AS_AGAIN) is False
    for wrong in (-1, math.nan):
        with pytest.raises(UsageError, match="negative or no number"):
            nanoseconds(wrong)
    assert nanoseconds(1.5) == 1_500_000_000
    assert nanoseconds(math.inf) == 2**63 - 1


def test_close_is_idempotent_and_use_after_it_says_so() -> None:
    released: list[object] = []
    parent = Handle("parent", released.append)
    child = Handle("child", released.append, parent)
    parent.close()
    parent.close()
    assert released == ["child", "parent"]
    assert child.is_closed
    with pytest.raises(ClosedError), child._use():
        pass


def test_close_inside_an_own_call_is_refused() -> None:
    handle = Handle("thing", lambda _: None)
    with handle._use(), pytest.raises(UsageError, match="inside one of its own calls"):
        handle.close()
    handle.close()


def test_close_inside_a_call_of_what_it_made_is_refused_before_anything_is_closed() -> None:
    released: list[object] = []
    parent = Handle("parent", released.append)
    child = Handle("child", released.append, parent)
    sibling = Handle("sibling", released.append, parent)
    with child._use(), pytest.raises(UsageError, match="inside one of its own calls"):
        parent.close()
    assert not released
    with parent._use(), child._use(), sibling._use():
        pass
    parent.close()
    assert released == ["sibling", "child", "parent"]


def test_a_close_that_was_interrupted_can_be_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    released: list[object] = []
    parent = Handle("parent", released.append)
    child = Handle("child", released.append, parent)

    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(child, "close", interrupted)
    with pytest.raises(KeyboardInterrupt):
        parent.close()
    monkeypatch.undo()
    parent.close()
    assert released == ["child", "parent"]


def test_a_call_that_is_interrupted_anywhere_gives_the_lock_back() -> None:
    handle = Handle("thing", lambda _: None)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    gc.disable()  # what a finalizer raises is lost
    try:
        for number in range(2000):
            with suppress(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, 0.0001 + number % 100 / 1e6)
                for _ in range(10_000):
                    with handle._use():
                        pass
    finally:
        gc.enable()
        signal.signal(signal.SIGALRM, before)
    handle.close()  # refused inside a call
    assert handle.is_closed


def test_close_waits_for_the_call_of_another_thread() -> None:
    order: list[str] = []
    handle = Handle("thing", lambda _: order.append("released"))
    inside, leave = threading.Event(), threading.Event()

    def use() -> None:
        with handle._use():
            inside.set()
            leave.wait(10)
            order.append("call ended")

    thread = threading.Thread(target=use)
    thread.start()
    inside.wait(10)
    closer = threading.Thread(target=handle.close)
    closer.start()
    leave.set()
    thread.join()
    closer.join()
    assert order == ["call ended", "released"]


def test_forgotten_handle_warns() -> None:
    gc.collect()  # what others forgot warns now
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        Handle("thing", lambda _: None)
        gc.collect()
    assert [warning.category for warning in seen] == [ResourceWarning]


def test_a_forgotten_client_does_not_harm_when_its_driver_goes(aeron_dir: Path) -> None:
    code = (
        "import gc, sys, warnings, aeron_spark, aeron_spark.testing\n"
        "warnings.simplefilter('ignore')\n"
        "seen = []\n"
        "with aeron_spark.MediaDriver(sys.argv[1]):\n"
        "    aeron_spark.Client(sys.argv[1], timeout=2.0, on_error=seen.append)\n"
        "    gc.collect()\n"
        "    other = [bytearray(64) for _ in range(1000)]\n"  # where its objects were
        "aeron_spark.testing.wait_until(lambda: seen, 20, 'the end of the driver')\n"
    )
    subprocess.run([sys.executable, "-c", code, aeron_dir], check=True, timeout=60)


def test_handlers_live_until_their_client_is_closed(driver: MediaDriver) -> None:
    def on_error(_failure: AeronError) -> None:
        pass

    handler = weakref.ref(on_error)
    client = Client(driver.aeron_dir, on_error=on_error)
    del on_error
    gc.collect()
    assert handler() is not None
    client.close()
    del client
    gc.collect()
    assert handler() is None


def _in_child(client: Client, told: multiprocessing.SimpleQueue[str]) -> None:
    try:
        client.client_id  # noqa: B018 - the call is the test
    except UsageError as failure:
        told.put(str(failure))
    client.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_leaves_the_parents_client_alone(client: Client) -> None:
    context = multiprocessing.get_context("fork")
    told: multiprocessing.SimpleQueue[str] = context.SimpleQueue()
    child = context.Process(target=_in_child, args=(client, told))
    child.start()
    child.join(20)
    assert child.exitcode == 0
    assert "after a fork" in told.get()
    assert client.client_id >= 0
    assert not client.is_closed


def test_interpreter_end_closes_what_was_forgotten(aeron_dir: Path) -> None:
    code = (
        "import sys, aeron_spark\n"
        "driver = aeron_spark.MediaDriver(sys.argv[1], settings={'aeron.dir.delete.on.shutdown': True})\n"
        "client = aeron_spark.Client(sys.argv[1])\n"
        "subscription = client.add_subscription('aeron:ipc', 1)\n"
    )
    subprocess.run([sys.executable, "-c", code, aeron_dir], check=True, timeout=60)
    assert not aeron_dir.exists()


def test_driver_settings_are_checked(aeron_dir: Path) -> None:
    with pytest.raises(UsageError, match=r"term\.buffer\.length|TERM_BUFFER_LENGTH"):
        MediaDriver(aeron_dir, settings={"aeron.ipc.term.buffer.length": "65k"})


def test_numbers_that_calls_take_by_default() -> None:
    """Programs rest on them: on how long a call blocks, and how much a poll takes."""
    found: dict[str, set[float]] = {}
    for of in (getattr(aeron_spark, name) for name in aeron_spark.__all__):
        for _, function in inspect.getmembers(of, inspect.isfunction) if inspect.isclass(of) else ():
            for one in inspect.signature(function).parameters.values():
                if type(one.default) in {int, float}:
                    found.setdefault(one.name, set()).add(one.default)
    assert found == {
        "timeout": {0.0, 10.0},
        "limit": {256},
        "row_capacity": {65_536},
        "byte_capacity": {16 << 20},
        "keepalive_interval": {0.5},
        "skew": {1.0},
        "stream_id": {100},
        "source_stream_id": {10},
        **{name: {0} for name in ("code", "since_ms", "min_recording_id", "from_recording_id")},
    }
