"""Goal: `aeron-spark archive record`, `replay` and the verbs of a running archive do by hand what the client does."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from aeron_spark import Archive, ArchivingMediaDriver, Client, Folder
from tests.kit.wait import wait_until
from tests.python.conftest import Run
from tests.python.test_archive import record

MESSAGES = [b"one", b"", b"three\x00\xff", b"four" * 2000]


@pytest.fixture
def run(run: Run, servers: ArchivingMediaDriver) -> Run:
    return lambda *arguments: run(*arguments, "--dir", servers.aeron_dir)


def publishing(servers: ArchivingMediaDriver, stream: int, count: int) -> threading.Thread:
    """A publisher of so many messages, that waits for its subscriber."""

    def publish() -> None:
        with (
            Client(servers.aeron_dir, name="publisher") as client,
            client.add_exclusive_publication("aeron:ipc", stream) as publication,
        ):
            publication.wait_connected(10)
            publication.offer_batch([b"message"] * count)
            done.wait(20)

    done = threading.Event()
    thread = threading.Thread(target=publish)
    thread.done = done  # type: ignore[attr-defined]
    thread.start()
    return thread


def end(thread: threading.Thread) -> None:
    thread.done.set()  # type: ignore[attr-defined]
    thread.join(20)
    assert not thread.is_alive()


def test_record_until_so_many_bytes(servers: ArchivingMediaDriver, run: Run) -> None:
    publisher = publishing(servers, 5, 100)
    try:
        code, out = run("record", "--channel", "aeron:ipc", "--stream", 5, "--bytes", 6400, "--json")
    finally:
        end(publisher)
    row = json.loads(out)
    assert (code, row["bytes"], row["from_position"]) == (0, 6400, 0)
    with Folder(servers.archive_dir) as folder:
        assert folder.recording(row["recording_id"]).stop_position == 6400


def test_record_ends_with_its_publisher(servers: ArchivingMediaDriver, run: Run) -> None:
    publisher = publishing(servers, 5, 10)
    publisher.done.set()  # type: ignore[attr-defined]
    try:
        code, out = run("record", "--channel", "aeron:ipc", "--stream", 5, "--auto-stop")
    finally:
        end(publisher)
    assert (code, "640 bytes, from 0 to 640" in out) == (0, True), out


def test_record_nothing(run: Run) -> None:
    code, out = run("record", "--channel", "aeron:ipc", "--stream", 6, "--duration", 0)
    assert (code, "nothing was recorded" in out) == (1, True)


@pytest.mark.parametrize("form", ["lines", "raw", "hex", "json"])
def test_replay(archive: Archive, run: Run, tmp_path: Path, form: str) -> None:
    recording_id, _ = record(archive, MESSAGES)
    out = tmp_path / "out"
    code, _ = run("replay", recording_id, "--out", out, "--form", form)
    data = out.read_bytes()
    assert code == 0
    if form == "json":
        assert [json.loads(line)["reserved_value"] for line in data.splitlines()] == list(range(len(MESSAGES)))
    else:
        expected = {
            "lines": b"".join(message + b"\n" for message in MESSAGES),
            "raw": b"".join(MESSAGES),
            "hex": b"".join(message.hex().encode() + b"\n" for message in MESSAGES),
        }
        assert data == expected[form]


def test_a_part_to_standard_output(archive: Archive, run: Run) -> None:
    recording_id, _ = record(archive, [b"first", b"second", b"third"])
    assert run("replay", recording_id, "--from", 64, "--to", 128) == (0, "second\n")
    code, out = run("replay", recording_id, "--from", 64, "--to", 0)
    assert (code, "nothing lies between 64 and 0" in out) == (2, True)
    code, out = run("replay", recording_id, "--channel", "aeron:ipc")
    assert (code, "--stream together" in out) == (2, True)


def test_a_file_that_can_not_be_written(archive: Archive, run: Run, tmp_path: Path) -> None:
    recording_id, _ = record(archive, [b"first"])
    code, out = run("replay", recording_id, "--out", tmp_path / "no" / "file")
    assert (code, "No such file or directory" in out) == (1, True)


def test_replay_to_a_channel_and_stop(archive: Archive, run: Run) -> None:
    recording_id, _ = record(archive, MESSAGES)
    with archive.client.add_subscription("aeron:ipc?alias=again", 77) as subscription:
        code, out = run("replay", recording_id, "--channel", "aeron:ipc?alias=again", "--stream", 77)
        assert (code, out.startswith("replay session ")) == (0, True)
        got: list[bytes] = []
        wait_until(
            lambda: got.extend(subscription.poll_batch(0.05).column("value").to_pylist()) or len(got) == len(MESSAGES),
            10,
            "the replay's messages",
        )
    assert got == MESSAGES
    assert run("stop-replay", recording_id)[0] == 0


def test_start_stop_and_changes(archive: Archive, run: Run) -> None:
    code, out = run("start", "--channel", "aeron:ipc", "--stream", 9, "--json")
    assert (code, json.loads(out)["subscription_id"] > 0) == (0, True)
    with archive.client.add_exclusive_publication("aeron:ipc", 9) as publication:
        recording_id = archive.wait_recording("aeron:ipc", 9, publication.session_id)
        publication.offer_batch([b"message"] * 10)
        archive.wait_position(recording_id, 640)
        assert run("stop", "--channel", "aeron:ipc", "--stream", 9)[0] == 0
        wait_until(lambda: archive.stop_position(recording_id) == 640, 10, "the recording to stop")
        code, out = run("stop", "--recording", recording_id)
        assert (code, "was not active" in out) == (1, True)
    assert run("stop")[0] == 2
    code, out = run("truncate", recording_id, "--to", 320)
    expected = (
        f"would truncate recording {recording_id} (0 to 640) at position 320, if a frame begins there; --yes does it"
    )
    assert (code, out) == (0, expected + "\n")
    assert archive.stop_position(recording_id) == 640
    assert run("truncate", recording_id, 320, "--yes")[0] == 0
    assert archive.stop_position(recording_id) == 320
    assert run("attach", recording_id)[0] == 0
    assert run("purge", recording_id, "--yes")[0] == 0
    assert archive.recording(recording_id) is None
    code, out = run("purge", recording_id, "--yes")
    assert (code, "unknown recording id" in out) == (2, True)


def test_a_dry_run_promises_nothing_that_is_refused(archive: Archive, run: Run) -> None:
    recording_id, end = record(archive, [bytes(992)] * 300)
    wait_until(lambda: archive.stop_position(recording_id) == end, 10, "the recording to stop")
    for verb, position, reason in (
        ("truncate", 70_001, f"goes from 0 to {end}: it can't be truncated at 70001"),
        ("truncate", -32, "it can't be truncated at -32"),
        ("truncate", end + 32, "it can't be truncated at"),
        ("purge-segments", 0, "no later segment"),
        ("purge-segments", 131_104, "every 131072 from 131072 to 262144"),
        ("purge-segments", 393_216, "no later segment"),
    ):
        for arguments in ((verb, recording_id, "--to", position), (verb, recording_id, "--to", position, "--yes")):
            code, out = run(*arguments)
            assert (code, reason in out) == (2, True), (arguments, out)
    code, out = run("truncate", recording_id, "--to", 131_072)
    assert (code, out.endswith(" at position 131072; --yes does it\n")) == (0, True), out
    code, out = run("truncate", recording_id, "--to", 131_072, "--json")
    assert (code, json.loads(out)) == (0, {"recording_id": recording_id, "to_position": 131_072, "dry_run": True}), out
    for arguments, words in (((), "truncate 0 --to POSITION"), ((32, "--to", 32), "give the position once: --to 32")):
        code, out = run("truncate", recording_id, *arguments)
        assert (code, words in out) == (2, True), out
    # As it was before --to.
    assert run("truncate", recording_id, 131_072) == run("truncate", recording_id, "--to", 131_072)
    code, out = run("purge-segments", recording_id, "--to", 131_072)
    assert (code, out.startswith(f"would purge segments of recording {recording_id} (0 to ")) == (0, True), out
    assert run("purge-segments", recording_id, "--to", 131_072, "--yes")[0] == 0


def test_a_change_tells_the_range_that_it_left(archive: Archive, run: Run) -> None:
    recording_id, end = record(archive, [bytes(992)] * 300)
    wait_until(lambda: archive.stop_position(recording_id) == end, 10, "the recording to stop")
    for verb, *arguments, told in (
        ("detach", "--to", 131_072, f"(131072 to {end})"),
        ("attach", f"(0 to {end}): 1 segment files"),
        ("truncate", "--to", 1024, "--yes", "(0 to 1024)"),
        ("purge", "--yes", "(0 to 1024)"),
    ):
        code, out = run(verb, recording_id, *arguments)
        assert (code, told in out) == (0, True), out


def test_an_active_recording_is_neither_purged_nor_truncated(archive: Archive, run: Run) -> None:
    archive.start_recording("aeron:ipc", 9)
    with archive.client.add_exclusive_publication("aeron:ipc", 9) as publication:
        recording_id = archive.wait_recording("aeron:ipc", 9, publication.session_id)
        for arguments in (("purge", recording_id), ("truncate", recording_id, "--to", 0)):
            code, out = run(*arguments)
            assert (code, "is active: stop it first" in out) == (2, True), out
        code, out = run("purge-segments", recording_id, "--to", 131_072)
        assert (code, "it has one segment" in out) == (2, True), out
