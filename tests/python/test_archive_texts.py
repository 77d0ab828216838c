"""Goal: errors of an archive name object, reason and remedy, and never reveal credentials.

Method: each mistake that an operator makes once; then a session with all that could give a password away turned up, and
everything that was written or shown searched for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aeron_spark import (
    AeronError,
    Archive,
    ArchiveErrorCode,
    ArchivingMediaDriver,
    Client,
    PeerError,
    UsageError,
    WaitTimeoutError,
)
from aeron_spark._native._lib import lib
from aeron_spark.archive.credentials import Supplier, UserPassword
from aeron_spark.archive.users import user_line
from aeron_spark.counters import Counters
from tests.conformance.archive.folder import mark_errors
from tests.kit.cnc import Cnc
from tests.kit.ports import free_port
from tests.kit.wait import wait_until
from tests.python.conftest import SETTINGS
from tests.python.test_archive import record

PASSWORD, WRONG = "open-sesame-4711", "open-says-me-4711"


def refusal(call: Callable[[], object]) -> AeronError:
    with pytest.raises(AeronError) as raised:
        call()
    return raised.value


def test_an_archive_that_is_not_there(servers: ArchivingMediaDriver, client: Client, tmp_path: Path) -> None:
    """No driver, no archive at a stream, none at an address, and a channel that is none."""
    told = refusal(lambda: Archive(aeron_dir=tmp_path / "none", timeout=0.2))
    assert isinstance(told, WaitTimeoutError)
    assert re.search("no live driver in .*/none within 200 ms, is one running on that directory", str(told))
    told = refusal(lambda: Archive(client, control_stream_id=4711, timeout=1))
    assert isinstance(told, WaitTimeoutError)
    assert re.search(
        f"channel=aeron:ipc.* streamId=4711 within 1s: is an archive running on the driver in {servers.aeron_dir}, with",
        str(told),
    )
    address = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    answers = "aeron:udp?endpoint=127.0.0.1:0"
    told = refusal(lambda: Archive(client, control_channel=address, response_channel=answers, timeout=1))
    assert isinstance(told, WaitTimeoutError)
    assert address in str(told)
    assert "is an archive running there, its aeron.archive.control.channel enabled and within reach" in str(told)
    told = refusal(lambda: Archive(client, control_channel="udp://there", timeout=0.2))
    assert isinstance(told, UsageError)
    assert "archive control channel udp://there" in str(told)


def test_recordings_and_positions_that_are_not_there(servers: ArchivingMediaDriver) -> None:
    with Archive(aeron_dir=servers.aeron_dir) as archive:
        recording_id, end = record(archive, [b"message"] * 10)
        for call, code, text in (
            (lambda: archive.start_position(77), 5, "StartPositionRequest with error 5: unknown recording id: 77"),
            (lambda: archive.replay(77), 5, "ReplayRequest with error 5: unknown recording id: 77"),
            (
                lambda: archive.replay(recording_id, position=end + 32),
                16,
                f"requested replay start position={end + 32} must be less than the limit position={end} for recording",
            ),
        ):
            told = refusal(call)
            assert isinstance(told, PeerError)
            assert (told.code, text in str(told)) == (code, True), told


@pytest.fixture
def client(servers: ArchivingMediaDriver) -> Iterator[Client]:
    with Client(servers.aeron_dir) as opened:
        yield opened


@pytest.fixture
def guarded(aeron_dir: Path, archive_dir: Path, tmp_path: Path) -> Iterator[ArchivingMediaDriver]:
    """An archive with a user, beside a driver that writes down each event."""
    users = tmp_path / "users"
    users.touch(0o600)
    users.write_text(user_line("alice", PASSWORD, ["all"], iterations=1000))
    settings = {
        **SETTINGS,
        "aeron.spark.archive.credentials.file": str(users),
        "aeron.event.log": "all",
        "aeron.event.log.filename": str(tmp_path / "events.log"),
    }
    with ArchivingMediaDriver(archive_dir, aeron_dir, settings=settings) as opened:
        yield opened


def test_credentials_are_told_to_nobody(
    guarded: ArchivingMediaDriver, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Not in the event log, the error logs, a counter, an error, a representation, or what the processes print."""
    said: list[str] = []
    plain, wrong = f"alice:{PASSWORD}".encode(), f"alice:{WRONG}".encode()
    for credentials in (wrong, UserPassword("alice", WRONG)):
        told = refusal(lambda credentials=credentials: Archive(aeron_dir=guarded.aeron_dir, credentials=credentials))
        assert "authentication rejected" in str(told)
        said.append(repr(told))
    for credentials in (plain, UserPassword("alice", PASSWORD)):
        said += [repr(credentials) if isinstance(credentials, UserPassword) else "", repr(Supplier(credentials))]
        with (
            Archive(aeron_dir=guarded.aeron_dir, credentials=credentials) as archive,
            Client(guarded.aeron_dir) as client,
        ):
            recording_id, _ = record(archive, [b"message"])
            said += [repr(archive), repr(archive.calls), repr(client)]
            for given in (plain, wrong):
                archive.replicate(
                    recording_id, "aeron:ipc", replication_channel="aeron:udp?endpoint=127.0.0.1:0", credentials=given
                )
            said.append(str(wait_until(archive.poll_for_error, 20, "the refused replication")))
            assert "authentication rejected" in said[-1]
            with Counters(guarded.aeron_dir) as counters:
                said += [repr(row) for row in counters.rows()]
    said += [*Cnc(guarded.aeron_dir).errors(), *mark_errors(guarded.archive.archive_dir)]
    guarded.close()
    log = (tmp_path / "events.log").read_text()
    assert "CMD_IN_ADD_EXCLUSIVE_PUBLICATION" in log
    printed = capfd.readouterr()
    said += [log, printed.out, printed.err]
    for secret in (PASSWORD, WRONG):
        assert not [text for text in said if secret in text]


def test_error_codes_have_the_names_of_the_protocol() -> None:
    """What `PeerError.code` can be; numbers that a later archive may send pass unchanged. Spec: 11 C2."""
    assert {f"AS_ARCHIVE_ERROR_{code.name}": code.value for code in ArchiveErrorCode} == {
        name: getattr(lib, name) for name in dir(lib) if name.startswith("AS_ARCHIVE_ERROR_")
    }
    assert sorted(ArchiveErrorCode) == list(range(17))
