"""How our archive client opens its session: kinds of response channels, and credentials that stay secret.

Spec: 07 §5.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from pathlib import Path

import pytest

from aeron_spark import Archive, ArchivingMediaDriver, PeerError, UsageError
from aeron_spark.archive import UserPassword
from aeron_spark.archive.addresses import open_source
from aeron_spark.archive.credentials import Supplier
from aeron_spark.counters import Counters
from tests.kit.ports import free_port
from tests.kit.wait import wait_until
from tests.python.conftest import SETTINGS

CONTROL_SESSIONS = 102  # a counter's type
PASSWORD = "correct horse"  # noqa: S105 - of the test's own user


@pytest.mark.parametrize(
    "response",
    [
        "aeron:udp?endpoint=127.0.0.1:0",
        "aeron:udp?endpoint=127.0.0.1:{port}",
        "aeron:udp?control-mode=response|control=127.0.0.1:{port}",
    ],
)
def test_sessions_over_udp(aeron_dir: Path, archive_dir: Path, response: str) -> None:
    control = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    settings = {
        **SETTINGS,
        "aeron.archive.control.channel.enabled": "true",
        "aeron.archive.control.channel": control,
        "aeron.archive.replication.channel": "aeron:udp?endpoint=127.0.0.1:0",
    }
    with (
        ArchivingMediaDriver(archive_dir, aeron_dir, settings=settings),
        Archive(
            aeron_dir=aeron_dir, control_channel=control, response_channel=response.format(port=free_port())
        ) as archive,
        Archive(archive.client, response_channel="aeron:ipc?control-mode=response") as local,
    ):
        assert archive.recordings() == local.recordings() == []
        assert archive.archive_id == local.archive_id
        assert archive.control_session_id != local.control_session_id
        archive.keepalive()


def test_a_view_of_an_archive_outlives_its_session(aeron_dir: Path, archive_dir: Path) -> None:
    """The archive ends a session that asks nothing for minutes; here its pings come a thousand times as often."""
    control = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    settings = {
        **SETTINGS,
        "aeron.archive.control.channel.enabled": "true",
        "aeron.archive.control.channel": control,
        "aeron.archive.session.liveness.check.interval": "1ms",
        "aeron.archive.connect.timeout": "3s",
    }
    with ArchivingMediaDriver(archive_dir, aeron_dir, settings=settings), Counters(aeron_dir) as counters:
        with (
            Archive(aeron_dir=aeron_dir) as archive,
            archive.add_recorded_publication("aeron:ipc?term-length=64k", 1001) as publication,
        ):
            recording_id = archive.wait_recording("", 1001, publication.session_id)
            archive.wait_position(recording_id, publication.offer_batch([b"%d" % number for number in range(100)]))

        def sessions_are_gone() -> bool:
            return not any(row.value for row in counters.rows() if row.type_id == CONTROL_SESSIONS)

        with open_source(control, aeron_dir=aeron_dir) as source:
            expected = source.recordings()
            wait_until(sessions_are_gone, 60, "the session to end")
            source.refresh()
            assert source.recordings() == expected
            wait_until(sessions_are_gone, 60, "the session to end")
            rows = source.read(recording_id).read_all()["value"].to_pylist()
    assert rows == [b"%d" % number for number in range(100)]


def users(path: Path) -> Path:
    """A credentials file with one user, readable by us only."""
    salt = b"salt of the test"
    key = hmac.digest(hashlib.pbkdf2_hmac("sha256", PASSWORD.encode(), salt, 4096), b"Client Key", "sha256")
    path.touch(mode=0o600)
    path.write_text(f"reader scram-sha-256$4096${salt.hex()}${hashlib.sha256(key).hexdigest()} query\n")
    return path


def test_credentials(aeron_dir: Path, archive_dir: Path, tmp_path: Path) -> None:
    settings = {**SETTINGS, "aeron.spark.archive.credentials.file": str(users(tmp_path / "users"))}
    secret = tmp_path / "secret"
    secret.write_text(f"reader:{PASSWORD}\n")
    with ArchivingMediaDriver(archive_dir, aeron_dir, settings=settings):
        for right in (f"reader:{PASSWORD}".encode(), secret, UserPassword("reader", PASSWORD)):
            with Archive(aeron_dir=aeron_dir, credentials=right) as archive:
                assert archive.recordings() == []
                assert PASSWORD not in repr(archive) + repr(vars(archive))
                with pytest.raises(PeerError) as refused:
                    archive.start_recording("aeron:ipc", 1001)
                assert refused.value.code == 13
        for wrong in (b"reader:wrong horse", UserPassword("reader", "wrong horse"), None):
            with pytest.raises(PeerError) as rejected:
                Archive(aeron_dir=aeron_dir, credentials=wrong)
            assert rejected.value.code == 10
            assert "horse" not in str(rejected.value)
        with pytest.raises(PeerError, match="no on_challenge"):
            Archive(aeron_dir=aeron_dir, credentials=b"reader")


def test_what_a_supplier_raises_or_gives_wrong(aeron_dir: Path, archive_dir: Path, tmp_path: Path) -> None:
    settings = {**SETTINGS, "aeron.spark.archive.credentials.file": str(users(tmp_path / "users"))}

    def breaks(challenge: bytes | None) -> bytes:
        if challenge is not None:
            raise KeyError("mine")
        return b"reader"

    with ArchivingMediaDriver(archive_dir, aeron_dir, settings=settings):
        with pytest.raises(KeyError, match="mine"):
            Archive(aeron_dir=aeron_dir, credentials=breaks)
        with pytest.raises(FileNotFoundError):
            Archive(aeron_dir=aeron_dir, credentials=tmp_path / "nowhere")


def test_suppliers() -> None:
    wrong: Callable[[bytes | None], bytes] = lambda _challenge: "text"  # type: ignore[assignment, return-value]  # noqa: E731
    with pytest.raises(UsageError, match="must be bytes"):
        Supplier(wrong).encoded()
    assert Supplier(None).encoded() == b""
    assert repr(UserPassword("reader", PASSWORD)) == "<UserPassword of 'reader'>"
    for challenge in (b"", b"who?", b"scram-sha-256 0 00 00", b"scram-sha-256 99999999999 00 00", b"\xff"):
        with pytest.raises(UsageError, match="challenge") as failure:
            UserPassword("reader", PASSWORD)(challenge)
        assert PASSWORD not in str(failure.value)
