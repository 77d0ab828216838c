"""Exactly once into an archive that is asked over the network only: UDP between two media drivers, no folder in common.

Tasks and commits are calls here. The archive with its driver is killed and started again between the steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from aeron_spark.archive.segments import Folder
from aeron_spark.errors import AeronError, UsageError
from aeron_spark.spark import access, ledger
from aeron_spark.spark.writing.options import WriteOptions
from tests.kit import dirs, mark, native
from tests.kit.ports import free_port
from tests.kit.processes import Process
from tests.spark.test_ledger import Sink, close_pool, stream_rows

# What a far host may do in this time, it does.
TIMEOUT = "3s"


class FarArchive:
    """The machine of the archive: its driver and its archive, to be killed and started."""

    def __init__(self, aeron_dir: Path, archive_dir: Path) -> None:
        self.aeron_dir, self.archive_dir = aeron_dir, archive_dir
        self.control = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
        self.rows = f"aeron:udp?endpoint=127.0.0.1:{free_port()}|term-length=64k"
        self.processes: list[Process] = []
        self.start()

    def start(self) -> None:
        self.processes.append(native.driver(self.aeron_dir))
        settings = {
            "aeron.archive.control.channel": self.control,
            "aeron.archive.control.channel.enabled": "true",
            "aeron.archive.replication.channel": "aeron:udp?endpoint=127.0.0.1:0",
        }
        self.processes.append(native.archive(self.aeron_dir, self.archive_dir, settings))

    def kill(self) -> None:
        while self.processes:
            self.processes.pop().kill()

    def start_again(self) -> None:
        """Not before the killed archive's sign of life is older than the 10 s for which another would be refused."""
        mark.age(self.archive_dir)
        self.start()

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.stop()


class FarSink(Sink):
    """A sink and a reader that know the archive's addresses."""

    def __init__(self, far: FarArchive, aeron_dir: Path) -> None:
        super().__init__(far)  # type: ignore[arg-type]
        here = {"controlChannel": far.control, "aeronDir": str(aeron_dir)}
        self.writing = {**here, "channel": far.rows, "publishTimeout": "20s"}
        self.reading = {**here, "access": "replay"}


@pytest.fixture
def far(aeron_dir: Path, archive_dir: Path) -> Iterator[FarArchive]:
    archive = FarArchive(aeron_dir, archive_dir)
    yield archive
    archive.stop()


@pytest.fixture
def sink(far: FarArchive) -> Iterator[FarSink]:
    with dirs.fresh("tasks") as here:
        driver = native.driver(here)
        yield FarSink(far, here)
        close_pool()
        for key in list(access._archives):
            access._archives.pop(key).close()
        driver.stop()


def test_a_far_archive_keeps_rows_and_ledger(sink: FarSink, far: FarArchive) -> None:
    assert sink.read() == [], "no ledger yet"
    lost = sink.task(b"killed attempt", batch=0)
    first = sink.task(b"a", b"b", batch=0)
    assert sink.read() == []
    assert sink.commit(first)
    assert not sink.commit(lost), "the first entry wins"
    assert sink.commit(sink.task(b"c", b"d" * 5000, batch=1))
    assert not sink.commit(sink.task(b"c", batch=1))
    other = FarSink(far, Path(sink.writing["aeronDir"]))
    assert other.commit(other.task(b"of another query", batch=0, streamId="5"))
    assert sink.read(streamId="1001") == [b"a", b"b", b"c", b"d" * 5000]
    assert stream_rows(sink) == [[b"a", b"b"], [b"c", b"d" * 5000], [b"of another query"]]
    close_pool()
    with Folder(far.archive_dir) as folder:
        found = [recording for recording in folder.recordings() if ledger.is_ledger(recording)]
        assert len(found) == 1, "one ledger, extended by each commit"
    # The same recordings, by one whose host sees the folder.
    near = Sink(far)  # type: ignore[arg-type]
    assert near.read(streamId="5") == [b"of another query"]
    assert near.commit(near.task(b"near", batch=0)), "either way goes on with the ledger of the other"
    assert sink.commit(sink.task(b"far", batch=2))
    assert sink.read() == sorted([b"a", b"b", b"c", b"d" * 5000, b"of another query", b"near", b"far"])


def test_a_far_archive_that_dies_and_comes_back(
    sink: FarSink, far: FarArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its machine dies between tasks and commit: nothing passes for committed, then the batch counts once."""
    monkeypatch.setenv("AERON_ARCHIVE_MESSAGE_TIMEOUT", "6s")
    assert sink.commit(sink.task(b"a", batch=0))
    done = sink.task(b"b", batch=1)
    far.kill()
    with pytest.raises(AeronError):
        sink.commit(done, publishTimeout=TIMEOUT)
    with pytest.raises(AeronError):
        sink.task(b"b", batch=1, publishTimeout=TIMEOUT)
    with pytest.raises(AeronError):
        sink.read()
    far.start_again()
    assert sink.read() == [b"a"]
    again = sink.task(b"b", batch=1)
    assert sink.commit(done), "what the archive had recorded is there"
    assert not sink.commit(again)
    assert sink.commit(sink.task(b"c", batch=2))
    assert sink.read() == [b"a", b"b", b"c"]
    assert stream_rows(sink) == [[b"a"], [b"b"], [b"c"]]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"recordTo": "/x", "controlChannel": "aeron:ipc"}, "recordTo or controlChannel, not both"),
        ({"controlStreamId": "10"}, "controlStreamId cannot be given.*controlChannel as well"),
        ({"controlChannel": "aeron:udp?endpoint=a:1"}, "does not hear aeron:ipc"),
        (
            {
                "controlChannel": "aeron:udp?endpoint=a:1",
                "channel": "aeron:udp?endpoint=a:2",
                "guarantee": "exactly-once",
                "syncLevel": "1",
            },
            r"give it aeron\.archive\.file\.sync\.level=1",
        ),
    ],
)
def test_what_a_far_archive_cannot_do_is_told_at_once(options: dict[str, str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        WriteOptions.parse({"streamId": "1", **options})
