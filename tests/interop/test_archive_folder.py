"""Goal: archive folders pass between the archive under test and the stock one, in both directions and after a crash.

Method: each test has a driver of its own and lets two archives, one after the other, work on one folder; the stock
ArchiveTool judges every folder, and a copy of a crashed one is recovered by both archives, which must agree.
"""

# ruff: noqa: PLR0917 - fixtures are arguments
from __future__ import annotations

import random
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.interop.archiving import (
    IPC,
    QUICK_LIVENESS,
    Opened,
    Recorded,
    assert_replays,
    begin,
    descriptor,
    extend_channel,
    record,
    wait_recorded,
    wait_stopped,
)
from tests.kit import dirs, mark, native, stock
from tests.kit.cnc import Cnc
from tests.kit.processes import Process
from tests.kit.subject import Subject
from tests.kit.wait import wait_until

OURS_TO_STOCK, STOCK_TO_OURS = "ours-then-stock", "stock-then-ours"
SEGMENT, PER_SEGMENT, FULL = 131_072, 128, [992]


@contextmanager
def archive_on(
    kind: str,
    subject: Subject,
    peer: Any,
    aeron_dir: Path,
    archive_dir: Path,
    settings: Mapping[str, str] | None = None,
) -> Iterator[tuple[Process, Any]]:
    """An archive, "ours" or "stock", and a stock client with a session on it."""
    start = stock.archive if kind == "stock" else subject.archive
    with start(aeron_dir, archive_dir, settings=settings) as process:
        client = peer.archiveClient(str(aeron_dir))
        try:
            yield process, client
        finally:
            client.close()


def assert_verified(archive_dir: Path, *arguments: str) -> str:
    """The stock tool finds nothing wrong, in any segment of any recording; returns what it printed."""
    result = stock.archive_tool(archive_dir, "verify", "-a", *arguments)
    assert result.code == 0, result.out
    assert "ERR" not in result.out, result.out
    return result.out


def extend(archive: Any, opened: Opened, stream: int, recording_id: int, first: int, count: int) -> int:
    """Continue a finished recording by `count` messages and end it again; returns the new stop position."""
    run = begin(archive, opened, stream, channel=extend_channel(archive, recording_id), extend=recording_id)
    position = run.publish(archive, first, count)
    archive.raw().stopRecording(run.subscription_id)
    wait_stopped(archive, recording_id, position)
    run.publication.close()
    return position


def messages_of(archive_dir: Path, run: Recorded) -> int:
    """Data frames that begin a message, as the stock tool's dump shows the recording."""
    out = stock.archive_tool(archive_dir, "dump", answers="n\n").out
    assert f"recordingId={run.recording_id}" in out
    return out.count("Frame at position")


def test_s81_the_stock_tool_verifies_and_describes_what_was_recorded(
    subject: Subject, peer: Any, aeron_dir: Path, archive_dir: Path, stream: int, opened: Opened
) -> None:
    """Folders of ours are verified and described by the stock tool, every field."""
    with subject.driver(aeron_dir):
        with archive_on("ours", subject, peer, aeron_dir, archive_dir) as (_, archive):
            many = record(archive, opened, stream, 500)
            full = record(archive, opened, stream + 1000, 128, sizes=[992])
            padded = record(archive, opened, stream + 2000, 200, sizes=[3000])
            later = record(
                archive,
                opened,
                stream + 3000,
                100,
                channel=f"{IPC}|init-term-id=7|term-id=10|term-offset=4096|mtu=1408",
            )
            extended = record(archive, opened, stream + 4000, 50)
            end = extend(archive, opened, stream + 4000, extended.recording_id, 50, 50)
            empty = begin(archive, opened, stream + 5000)
            archive.raw().stopRecording(empty.subscription_id)
            wait_stopped(archive, empty.recording_id, 0)
            lines = list(archive.listRecordings(0, 100))
        seen = mark.read(archive_dir)
        assert seen is not None
        assert seen.activity_ms == mark.CLEAN_END
    out = assert_verified(archive_dir)
    ids = [run.recording_id for run in (many, full, padded, later, extended, empty)]
    assert [int(found) for found in re.findall(r"\(recordingId=(\d+)\) OK", out)] == ids

    described = stock.archive_tool(archive_dir, "describe").out
    assert "[MarkFileHeader]" in described
    texts = re.findall(r"\[RecordingDescriptor\]\([^)]*\):(.*)", described)
    assert len(texts) == len(ids)
    for line, text in zip(lines, texts, strict=True):
        for name, value in descriptor(line).items():
            shown = f"{name}='{value}'" if "hannel" in name or name == "sourceIdentity" else f"{name}={value}"
            assert shown in text, f"{shown} not in {text}"
    assert f"recordingId={extended.recording_id}|" in described
    assert f"stopPosition={end}|" in described


def test_checksums_are_those_of_the_stock_archive(
    subject: Subject, peer: Any, aeron_dir: Path, archive_dir: Path, stream: int, opened: Opened
) -> None:
    checksum = {
        "aeron.archive.record.checksum": "io.aeron.archive.checksum.Crc32",
        "aeron.archive.replay.checksum": "io.aeron.archive.checksum.Crc32",
    }
    with subject.driver(aeron_dir), archive_on("ours", subject, peer, aeron_dir, archive_dir, checksum) as (_, archive):
        run = record(archive, opened, stream, 300)
        assert_replays(archive, opened, run.recording_id, 300, stop=run.position)
    assert_verified(archive_dir, "-checksum", "org.agrona.checksum.Crc32")


@pytest.mark.parametrize("order", [OURS_TO_STOCK, STOCK_TO_OURS])
def test_s81_a_folder_goes_on_under_the_other_archive(
    subject: Subject, peer: Any, aeron_dir: Path, archive_dir: Path, stream: int, opened: Opened, order: str
) -> None:
    """A folder of one archive is listed, replayed, extended and gone on with by the other, and handed back."""
    first, second = order.split("-then-")
    with subject.driver(aeron_dir):
        with archive_on(first, subject, peer, aeron_dir, archive_dir) as (_, archive):
            runs = [record(archive, opened, stream + 1000 * step, 200) for step in range(3)]
            before = list(archive.listRecordings(0, 100))
        with archive_on(second, subject, peer, aeron_dir, archive_dir) as (_, archive):
            assert list(archive.listRecordings(0, 100)) == before
            for run in runs:
                assert_replays(archive, opened, run.recording_id, 200, stop=run.position)
            end = extend(archive, opened, stream + 1000, runs[1].recording_id, 200, 100)
            assert_replays(archive, opened, runs[1].recording_id, 300, stop=end)
            new = record(archive, opened, stream + 4000, 50)
            assert new.recording_id == 3, "ids go on from the catalog's next one"
        assert_verified(archive_dir)
        with archive_on(first, subject, peer, aeron_dir, archive_dir) as (_, archive):
            assert_replays(archive, opened, runs[1].recording_id, 300, stop=end)
            assert_replays(archive, opened, new.recording_id, 50, stop=new.position)


@pytest.mark.parametrize("order", [OURS_TO_STOCK, STOCK_TO_OURS])
def test_s61_a_recording_truncated_to_a_segment_boundary_goes_on_under_the_other_archive(
    subject: Subject, peer: Any, aeron_dir: Path, archive_dir: Path, stream: int, opened: Opened, order: str
) -> None:
    """Truncated by one archive to where a segment ends, replayed and extended by the other.

    In between the stock tool misses the empty segment behind the end, which neither archive leaves, and marks the recording
    invalid, so it judges a copy.
    """
    first, second = order.split("-then-")
    settings = {"aeron.archive.segment.file.length": str(SEGMENT)}
    with subject.driver(aeron_dir):
        with archive_on(first, subject, peer, aeron_dir, archive_dir, settings) as (_, archive):
            run = record(archive, opened, stream, 2 * PER_SEGMENT + 5, sizes=FULL)
            archive.raw().truncateRecording(run.recording_id, SEGMENT)
            wait_stopped(archive, run.recording_id, SEGMENT)
            wait_until(
                lambda: {path.name for path in archive_dir.glob("*.rec")} == {f"{run.recording_id}-0.rec"},
                10,
                "the segments behind it to be deleted",
            )
        with dirs.fresh("copy") as copied:
            shutil.copytree(archive_dir, copied, dirs_exist_ok=True)
            judged = stock.archive_tool(copied, "verify", "-a").out
        assert f"stopPosition={SEGMENT} exceed max segment file position={SEGMENT - 1}" in judged, judged
        with archive_on(second, subject, peer, aeron_dir, archive_dir, settings) as (_, archive):
            assert_replays(archive, opened, run.recording_id, PER_SEGMENT, stop=SEGMENT, sizes=FULL)
            end = extend(archive, opened, stream, run.recording_id, PER_SEGMENT, 7)
        assert_verified(archive_dir)
        with archive_on(first, subject, peer, aeron_dir, archive_dir, settings) as (_, archive):
            assert int(archive.raw().getStopPosition(run.recording_id)) == end


def recorded_files(archive_dir: Path, recording_id: int) -> dict[str, bytes]:
    """Content of the segment files by their base positions."""
    return {path.stem.split("-", 1)[1]: path.read_bytes() for path in sorted(archive_dir.glob(f"{recording_id}-*.rec"))}


@pytest.mark.parametrize("checksum", [None, "io.aeron.archive.checksum.Crc32", "io.aeron.archive.checksum.Crc32c"])
def test_one_stream_recorded_by_both_gives_the_same_files(
    subject: Subject,
    peer: Any,
    aeron_dir: Path,
    archive_dir: Path,
    stream: int,
    opened: Opened,
    checksum: str | None,
) -> None:
    settings = {} if checksum is None else {"aeron.archive.record.checksum": checksum}
    theirs_settings = {**settings, "aeron.archive.local.control.stream.id": "110", "aeron.archive.id": "7"}
    with (
        dirs.fresh("theirs") as their_dir,
        subject.driver(aeron_dir),
        subject.archive(aeron_dir, archive_dir, {**settings, "aeron.archive.id": "8"}),
        stock.archive(aeron_dir, their_dir, settings=theirs_settings),
    ):
        ours = opened(peer.archiveClient(str(aeron_dir)))
        theirs = opened(peer.archiveClientOn(str(aeron_dir), 110))
        theirs.startRecording(IPC, stream)
        run = begin(ours, opened, stream)
        wait_until(lambda: len(theirs.listRecordings(0, 1)) == 1, 10, "the stock archive to record too")
        position = run.publish(ours, 0, 700)
        wait_recorded(theirs, 0, position)
        for archive in (ours, theirs):
            archive.raw().stopRecording(IPC, stream)
            wait_stopped(archive, 0, position)
        mine, other = recorded_files(archive_dir, 0), recorded_files(their_dir, 0)
        assert list(mine) == list(other)
        assert [base for base in mine if mine[base] != other[base]] == []

        def known(archive: Any) -> dict[str, str]:
            found = descriptor(archive.listRecording(0)[0])
            return {name: value for name, value in found.items() if "imestamp" not in name}

        assert known(ours) == known(theirs)


def crashed_folder(
    subject: Subject, peer: Any, aeron_dir: Path, archive_dir: Path, stream: int, opened: Opened, kind: str
) -> tuple[int, int]:
    """Kill an archive with -9 in the middle of a recording; returns the id and the last position seen recorded."""
    start = stock.archive if kind == "stock" else subject.archive
    process = start(aeron_dir, archive_dir)
    archive = peer.archiveClient(str(aeron_dir))
    run = begin(archive, opened, stream)
    position = run.publish(archive, 0, 500)
    process.kill()
    archive.client().aeron().close()
    # Until it is reaped, the dead archive's control subscription holds back every request.
    wait_until(lambda: Cnc(aeron_dir).value_of("Client liveness timeouts") == 1, 30, "the dead archive to be reaped")
    return run.recording_id, position


@pytest.mark.parametrize("kind", ["ours", "stock"])
def test_both_archives_recover_a_crashed_folder_alike(
    subject: Subject, peer: Any, aeron_dir: Path, archive_dir: Path, stream: int, opened: Opened, kind: str
) -> None:
    with subject.driver(aeron_dir, QUICK_LIVENESS):
        recording_id, recorded = crashed_folder(subject, peer, aeron_dir, archive_dir, stream, opened, kind)
        stops = {}
        for other in ("ours", "stock"):
            with dirs.fresh(f"crashed-{other}") as copy:
                shutil.copytree(archive_dir, copy, dirs_exist_ok=True)
                mark.age(copy)
                with archive_on(other, subject, peer, aeron_dir, copy) as (_, archive):
                    stops[other] = archive.raw().getStopPosition(recording_id)
                    assert_replays(archive, opened, recording_id, 500, stop=recorded)
                    end = extend(archive, opened, stream, recording_id, 500, 100)
                    assert_replays(archive, opened, recording_id, 600, stop=end)
                assert_verified(copy)
        assert stops == {"ours": recorded, "stock": recorded}


@pytest.mark.parametrize("kind", ["ours", "stock"])
def test_a_folder_in_use_is_refused(subject: Subject, peer: Any, aeron_dir: Path, archive_dir: Path, kind: str) -> None:
    with subject.driver(aeron_dir), subject.archive(aeron_dir, archive_dir):
        if kind == "stock":
            with stock.raises("IllegalStateException", "active [Mm]ark file detected"):
                peer.archive(str(aeron_dir), str(archive_dir), dict(stock.ARCHIVE_SETTINGS))
        elif not subject.is_stock:
            second = Process(
                "second archive",
                [
                    native.executable("aeron-spark-archive"),
                    "--beside-driver",
                    f"-Daeron.dir={aeron_dir}",
                    f"-Daeron.archive.dir={archive_dir}",
                    "-Daeron.archive.control.channel.enabled=false",
                ],
            )
            assert second.wait_end() == 1
            assert str(archive_dir) in second.stderr()
        peer.archiveClient(str(aeron_dir)).close()


def test_a_recording_ends_orderly_with_its_archive(
    subject: Subject, peer: Any, aeron_dir: Path, archive_dir: Path, stream: int, opened: Opened
) -> None:
    with subject.driver(aeron_dir):
        with archive_on("ours", subject, peer, aeron_dir, archive_dir) as (_, archive):
            run = begin(archive, opened, stream)
            position = run.publish(archive, 0, 100)
        out = stock.archive_tool(archive_dir, "describe").out
        assert f"|stopPosition={position}|" in out, "the stop position is written at the end of the process"


def test_a_stock_archive_works_on_the_driver_under_test(
    subject: Subject, peer: Any, aeron_dir: Path, archive_dir: Path, stream: int, opened: Opened
) -> None:
    with subject.driver(aeron_dir):
        opened(peer.archive(str(aeron_dir), str(archive_dir), dict(stock.ARCHIVE_SETTINGS)))
        archive = opened(peer.archiveClient(str(aeron_dir)))
        run = record(archive, opened, stream, 500)
        assert_replays(archive, opened, run.recording_id, 500, stop=run.position)
        assert_verified(archive_dir)


def test_the_archive_works_on_a_stock_driver(
    subject: Subject, peer: Any, aeron_dir: Path, archive_dir: Path, stream: int, opened: Opened
) -> None:
    with stock.driver(aeron_dir), archive_on("ours", subject, peer, aeron_dir, archive_dir) as (_, archive):
        run = record(archive, opened, stream, 500)
        assert_replays(archive, opened, run.recording_id, 500, stop=run.position)


def test_the_stock_tool_counts_the_messages(
    subject: Subject, peer: Any, aeron_dir: Path, archive_dir: Path, stream: int, opened: Opened
) -> None:
    with subject.driver(aeron_dir), archive_on("ours", subject, peer, aeron_dir, archive_dir) as (_, archive):
        run = record(archive, opened, stream, 20, sizes=[100])
    wait_until((archive_dir / "archive.catalog").exists, 1, "the catalog")
    assert messages_of(archive_dir, run) == 20


def test_an_archive_killed_while_it_writes_loses_nothing_that_it_had_told(
    subject: Subject, peer: Any, aeron_dir: Path, archive_dir: Path, stream: int, rng: random.Random
) -> None:
    """Killed at a random moment; whole frames up to at least the last reported position, and both archives find the same end.

    992 bytes make frames of 1024, which fill terms to the last byte: a padding frame at the end would make the stock
    archive refuse to start (Spec: 06 §6, QUIRK).
    """
    with subject.driver(aeron_dir, QUICK_LIVENESS):
        process = subject.archive(aeron_dir, archive_dir)
        archive = peer.archiveClient(str(aeron_dir))
        archive.startRecording(IPC, stream)
        load = ["ipc-pub", "--dir", aeron_dir, "--stream", stream, "--channel", IPC, "--size", 992]
        publisher = Process(
            "publisher", stock.peers([*load, "--warmup", 1, "--count", 10**9], options=stock.QUICK_START)
        )
        enough = rng.randrange(131072, 20 * 131072)
        wait_until(lambda: (Cnc(aeron_dir).value_of("rec-pos: 0 ") or 0) > enough, 20, "the recording to have grown")
        process.kill()
        told = Cnc(aeron_dir).value_of("rec-pos: 0 ") or 0
        publisher.kill()
        archive.client().aeron().close()
        wait_until(lambda: (Cnc(aeron_dir).value_of("Client liveness timeouts") or 0) >= 2, 30, "the dead to be reaped")
        stops = {}
        for other in ("ours", "stock"):
            with dirs.fresh(f"crashed-{other}") as copy:
                shutil.copytree(archive_dir, copy, dirs_exist_ok=True)
                mark.age(copy)
                with archive_on(other, subject, peer, aeron_dir, copy) as (_, client):
                    stop = stops[other] = client.raw().getStopPosition(0)
                if other == "stock" and not (copy / f"0-{stop - stop % 131072}.rec").exists():
                    # Killed between two segments: its tool wants an empty one, which its recovery does not add.
                    (copy / f"0-{stop}.rec").write_bytes(bytes(131072))
                assert_verified(copy)
        assert stops["ours"] == stops["stock"] >= told > enough
        assert stops["ours"] % 1024 == 0


def test_limits_are_told_by_their_codes(
    subject: Subject, peer: Any, aeron_dir: Path, archive_dir: Path, stream: int, opened: Opened
) -> None:
    settings = {"aeron.archive.max.concurrent.recordings": "1", "aeron.archive.max.concurrent.replays": "1"}
    with subject.driver(aeron_dir), archive_on("ours", subject, peer, aeron_dir, archive_dir, settings) as (_, archive):
        run = begin(archive, opened, stream)
        position = run.publish(archive, 0, 500)
        with stock.raises("ArchiveException", "max concurrent recordings reached 1") as error:
            archive.startRecording(IPC, stream + 1)
        assert error.java.errorCode() == 8
        replay = archive.replay(run.recording_id, 0, position, 2001)
        opened(replay.subscription())
        with stock.raises("ArchiveException", "max concurrent replays reached 1") as error:
            archive.replay(run.recording_id, 0, position, 2002)
        assert error.java.errorCode() == 7


def test_low_storage_refuses_a_recording(
    subject: Subject, peer: Any, aeron_dir: Path, archive_dir: Path, stream: int
) -> None:
    settings = {"aeron.archive.low.storage.space.threshold": str(2**60)}
    with subject.driver(aeron_dir), archive_on("ours", subject, peer, aeron_dir, archive_dir, settings) as (_, archive):
        with stock.raises("ArchiveException", f"low storage threshold={2**60} <= usableSpace=") as error:
            archive.startRecording(IPC, stream)
        assert error.java.errorCode() == 11
