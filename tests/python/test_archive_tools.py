"""Goal: the tools of an archive's folder report correctly, write only on request, and skip a bad recording.

Method: folders of stock archives (tests/golden/archive), damaged at chosen bytes; what each must answer follows from Spec: 06.
The stock tool's opinion of the same folders is in tests/interop/test_archive_tools.py.

Spec: 06 §12, §12.1.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import zlib
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from aeron_spark import Archive, ArchivingMediaDriver
from aeron_spark.archive.segment_files import orphans, segment_files
from aeron_spark.archive.segments import Folder
from aeron_spark.archive.tools import Catalog, RecordingState
from aeron_spark.types import RecordChecksum
from tests.kit import packed
from tests.kit.old_archive import downgrade
from tests.kit.wait import wait_until
from tests.python.conftest import Run

GOLDEN = Path(__file__).parents[1] / "golden" / "archive"
ACTIVITY_OFFSET = 16

Golden = Callable[[str], Path]


@pytest.fixture
def golden(tmp_path: Path) -> Golden:
    def unpack(name: str) -> Path:
        packed.unpack(GOLDEN / f"{name}.tar.gz", tmp_path)
        shutil.rmtree(tmp_path / name / "messages")
        return tmp_path / name

    return unpack


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def change(path: Path, offset: int, value: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(value)


def rows(out: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in out.splitlines()]


def test_reading_tools_write_nothing(golden: Golden, run: Run) -> None:
    folder = golden("archive")
    before = contents(folder)
    for verb, *arguments in (
        ("describe",),
        ("describe", "--all"),
        ("describe-all",),
        ("verify", "-a"),
        ("checksum", "--checksum", "crc-32", "-a"),
        ("compact",),
        ("delete-orphans",),
        ("migrate",),
        ("count-entries",),
        ("errors",),
        ("pid",),
        ("dump", "--frames", "2"),
    ):
        code, out = run(verb, folder, *arguments)
        assert code == 0, (verb, out)
    assert contents(folder) == before


def test_times_of_a_recording_are_iso_8601(golden: Golden, run: Run) -> None:
    folder = golden("archive")
    _, out = run("describe", folder, 7, "--json")
    [told] = rows(out)
    started = str(told["start_timestamp"])
    assert datetime.fromisoformat(started).timestamp() * 1000 == told["start_timestamp_ms"]
    assert started.endswith("Z")
    _, out = run("describe", folder, 7)
    fields = dict(line.split(maxsplit=1) for line in out.splitlines()[1:] if len(line.split()) > 1)
    assert (fields["start_timestamp"], fields["stop_timestamp"]) == (started, told["stop_timestamp"] or "-")
    assert not any(name.endswith("_ms") for name in fields)
    assert started in run("describe", folder)[1]


def test_describe(golden: Golden, run: Run) -> None:
    folder = golden("archive")
    code, out = run("describe", folder, "--json")
    mark, catalog, *recordings = rows(out)
    assert (code, mark["archive_id"], mark["pid"], mark["control_stream_id"]) == (0, 42, 9325, 10)
    assert (catalog["capacity"], catalog["used"], catalog["next_recording_id"]) == (1048576, 3104, 12)
    assert [row["recording_id"] for row in recordings] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11]
    _, out = run("describe", folder, "--all", "--json")
    assert [row["catalog_state"] for row in rows(out)[2:]] == ["VALID"] * 9 + ["DELETED"] + ["VALID"] * 2
    code, out = run("describe", folder, 9)
    assert code == 0
    assert "catalog_state        DELETED" in out
    assert "ended in order" in run("describe", folder)[1]
    assert run("count-entries", folder) == (0, "11\n")
    assert run("count-entries", folder, "--json") == (0, '{"invalid": 0, "valid": 11, "deleted": 1}\n')
    assert run("pid", folder) == (0, "9325\n")
    code, out = run("errors", folder, "--json")
    logged, unread = rows(out)
    assert (logged["source"], unread["source"], unread["count"]) == ("archive", "driver", 0)
    assert "unknown media: nonsense" in str(logged["text"])
    assert "cnc.dat" in str(unread["unreadable"])


def test_no_folder_and_no_recording(golden: Golden, run: Run, tmp_path: Path) -> None:
    code, out = run("verify", tmp_path)
    assert code == 1
    assert "is no archive folder: there is no archive.catalog in it" in out
    file = tmp_path / "file"
    file.touch()
    for verb in ("verify", "list"):
        code, out = run(verb, file)
        assert code == 1
        assert f"{file} is no archive folder: it, or a part of that path, is a file" in out
    code, out = run("verify", golden("archive-crc"), 7)
    assert code == 2
    assert "no recording found with recordingId: 7" in out


@pytest.mark.parametrize("name", ["archive", "archive-crc", "archive-crc32c", "archive-full", "archive-replicated"])
def test_verify_finds_nothing_wrong(golden: Golden, run: Run, name: str) -> None:
    code, out = run("verify", golden(name), "-a", "--json")
    assert code == 0, out
    told = {"archive-crc": "crc-32", "archive-crc32c": "crc-32c"}.get(name, "none")
    assert {row["checksum"] for row in rows(out) if row["outcome"] == "OK" and row["bytes"]} == {told}
    assert all(row["outcome"] == ("SKIPPED" if row["state"] == "DELETED" else "OK") for row in rows(out))


def test_a_damaged_frame_is_found_and_the_rest_goes_on(golden: Golden, run: Run) -> None:
    folder = golden("archive")
    change(folder / "1-131072.rec", 12, struct.pack("<ii", 5, 77))  # session id and, wrong, the stream id
    code, out = run("verify", folder, "-a", "--json")
    found = {row["recording_id"]: row for row in rows(out)}
    assert code == 1
    assert found[1]["outcome"] == "BAD"
    assert "recording 1 at position 131072" in str(found[1]["text"])
    assert "1-131072.rec" in str(found[1]["text"])
    assert [row["outcome"] for row in rows(out)].count("OK") == 10
    # The last segment alone is whole.
    assert run("verify", folder, 1)[0] == 0


@pytest.mark.parametrize("name", ["archive-crc", "archive-crc32c"])
def test_a_changed_payload_byte_is_found_by_its_checksum(golden: Golden, run: Run, name: str) -> None:
    folder = golden(name)
    change(folder / "0-131072.rec", 40, b"\xff\xfe")
    code, out = run("verify", folder, "-a")
    assert code == 1
    assert "checksum failed recorded=" in out
    assert run("verify", folder, "-a", "--checksum", "none")[0] == 0


def test_checksums_are_computed_anew_and_carried(golden: Golden, run: Run) -> None:
    folder = golden("archive")
    assert run("verify", folder, "-a", "--checksum", "crc-32")[0] == 1
    code, out = run("checksum", folder, "--checksum", "org.agrona.checksum.Crc32", "-a", "--yes")
    assert code == 0
    assert "(recordingId=0) changed" in out
    code, out = run("verify", folder, "-a", "--checksum", "crc-32")
    assert code == 0, out
    # A frame's field is zlib's CRC-32 of its payload with the padding behind it.
    segment = (folder / "3-196608.rec").read_bytes()
    offset = 200704 - 196608
    length = struct.unpack_from("<i", segment, offset)[0]
    payload = segment[offset + 32 : offset + (length + 31) // 32 * 32]
    assert struct.unpack_from("<I", segment, offset + 12)[0] == zlib.crc32(payload)
    with Folder(folder) as opened:
        assert opened.checksum(0) == RecordChecksum.CRC_32
    assert "changed 0 of" in run("checksum", folder, 0, "--checksum", "crc-32", "-a", "--yes")[1]
    assert run("checksum", folder, "--checksum", "none")[0] == 2


def test_a_crashed_recording_is_ended_by_repair_alone(golden: Golden, run: Run) -> None:
    folder = golden("archive-crashed")
    before = contents(folder)
    code, out = run("verify", folder, "-a", "--json")
    (row,) = rows(out)
    assert (code, row["outcome"], row["stop_position"]) == (0, "OK", 317056)
    assert contents(folder) == before
    code, out = run("verify", folder, "--repair")
    assert (code, "OK, repaired" in out) == (0, True)
    with Catalog(folder) as catalog:
        (entry,) = catalog.entries()
    assert entry.recording.stop_position == 317056
    # The mark file is as the crashed archive left it.
    assert contents(folder)["archive-mark.dat"] == before["archive-mark.dat"]


def test_missing_bytes_are_told_and_repaired(golden: Golden, run: Run) -> None:
    folder = golden("archive")
    with (folder / "0-262144.rec").open("r+b") as file:
        file.seek(0)
        lengths = []
        while (length := struct.unpack("<i", file.read(4).ljust(4, b"\0"))[0]) > 0:
            lengths.append(file.tell() - 4)
            file.seek(lengths[-1] + (length + 31) // 32 * 32)
        file.truncate(lengths[-1])
        file.truncate(131072)
    end = 262144 + lengths[-1]
    code, out = run("verify", folder, 0)
    assert code == 1
    assert f"the frames end at position {end}, before stopPosition=298752" in out
    assert "(--repair does it)" in out
    assert run("verify", folder, 0, "--repair")[0] == 0
    assert run("verify", folder, 0, "-a")[0] == 0
    with Catalog(folder) as catalog:
        assert catalog.entries(0)[0].recording.stop_position == end


def test_repair_refreshes_a_checksum_of_the_catalog(golden: Golden, run: Run) -> None:
    folder = golden("archive-crc")
    with Catalog(folder) as catalog:
        (entry,) = catalog.entries()
    stop_offset = entry.offset + 32 + 48
    change(folder / "archive.catalog", stop_offset, struct.pack("<q", -1))  # as if it had been killed
    code, out = run("verify", folder, "--repair")
    assert code == 0, out
    code, out = run("verify", folder, "-a", "--checksum", "crc-32")
    assert code == 0, out


def test_an_incomplete_last_fragment_is_told_and_cut(golden: Golden, run: Run) -> None:
    folder = golden("archive-crashed")
    segment = folder / "0-262144.rec"
    data = segment.read_bytes()
    at = last = 0
    while (length := struct.unpack_from("<i", data, at)[0]) > 0:
        last, at = at, at + (length + 31) // 32 * 32
    # A frame behind the last, over a page's end, of which only the first page got to the disk.
    header = bytearray(data[last : last + 32])
    page_end = (at // 4096 + 1) * 4096
    struct.pack_into("<i", header, 0, page_end - at + 1000)
    struct.pack_into("<i", header, 8, (262144 + at) % 65536)
    change(segment, at, bytes(header) + b"x" * (page_end - at - 32))
    code, out = run("verify", folder)
    assert code == 1
    assert "Found potentially incomplete last fragment straddling page boundary" in out
    assert run("verify", folder, "--repair")[0] == 0
    assert run("verify", folder, "-a")[0] == 0
    assert segment.stat().st_size == 131072
    assert set(segment.read_bytes()[at:]) == {0}
    with Catalog(folder) as catalog:
        assert catalog.entries()[0].recording.stop_position == 262144 + at


def test_the_empty_segment_behind_a_full_one(golden: Golden, run: Run) -> None:
    folder = golden("archive-full")
    (folder / "0-131072.rec").unlink()
    code, out = run("verify", folder, 0)
    assert code == 1
    assert "the empty segment at stopPosition=131072 is missing" in out
    assert run("verify", folder, 0, "--repair")[0] == 0
    assert (folder / "0-131072.rec").read_bytes() == bytes(131072)


def test_states(golden: Golden, run: Run) -> None:
    folder = golden("archive")
    assert run("mark-invalid", folder, 4) == (0, "(recordingId=4) changed state to INVALID\n")
    code, out = run("mark-invalid", folder, 4)
    assert code == 2
    assert "state transition INVALID -> INVALID is not allowed" in out
    assert run("count-entries", folder) == (0, "10\n")
    with Folder(folder) as opened:
        assert 4 not in {recording.recording_id for recording in opened.recordings()}
    code, out = run("verify", folder, 4)
    assert (code, "marked INVALID although all is well" in out) == (1, True)
    assert run("mark-valid", folder, 4)[0] == 0
    assert run("verify", folder, 4)[0] == 0
    code, out = run("mark-valid", folder, 9)
    assert (code, "state transition DELETED -> VALID is not allowed" in out) == (2, True)


def test_compact_drops_what_is_not_valid(golden: Golden, run: Run) -> None:
    folder = golden("archive")
    assert run("mark-invalid", folder, 1)[0] == 0
    for recording_id in (1, 2):
        (folder / f"{recording_id}.time-index").touch()
    before = {path.name for path in folder.iterdir()}
    code, out = run("compact", folder)
    assert (code, "would delete 2 records" in out, "would delete" in out) == (0, True, True)
    assert {path.name for path in folder.iterdir()} == before
    code, out = run("compact", folder, "--yes")
    assert (code, "Compaction result: deleted 2 records and reclaimed 512 bytes" in out) == (0, True)
    assert before - {path.name for path in folder.iterdir()} == {
        "1.time-index",
        *(f"1-{n * 131072}.rec" for n in range(4)),
    }
    with Catalog(folder) as catalog:
        assert [entry.recording.recording_id for entry in catalog.entries()] == [0, 2, 3, 4, 5, 6, 7, 8, 10, 11]
        assert catalog.info().next_recording_id == 12
        assert catalog.info().capacity == catalog.info().used
    assert run("verify", folder, "-a")[0] == 0


def test_orphans(golden: Golden, run: Run) -> None:
    folder = golden("archive")
    made = {
        "5-131072.rec": "before the start position 262144",
        "5-655360.rec": "behind the stop position 528512",
        "5-x.rec": "its name has no position",
        "9-0.rec": "the recording is deleted",
        "0-0.rec.del": "left over from a deletion",
        "77-0.rec": "the catalog has no such recording",
        "9.time-index": "time index of a recording that is gone",
    }
    for name in made:
        (folder / name).write_bytes(b"")
    for name in ("5-note.txt", "5.time-index"):
        (folder / name).write_bytes(b"")
    with Catalog(folder) as catalog:
        found = {orphan.file.path.name: orphan for orphan in orphans(catalog.entries(), segment_files(folder))}
    assert found.keys() == made.keys()
    assert all(made[name] in orphan.reason for name, orphan in found.items())
    code, out = run("delete-orphans", folder)
    assert (code, "would delete 6 files" in out) == (0, True)
    assert all((folder / name).exists() for name in made)
    code, out = run("delete-orphans", folder, "--yes")
    assert (code, "deleted 6 files" in out) == (0, True)
    assert [name for name in made if (folder / name).exists()] == ["77-0.rec"]
    assert run("verify", folder, "-a")[0] == 0


def test_no_orphans_are_deleted_where_segments_were_being_moved(golden: Golden, run: Run) -> None:
    folder = golden("archive")
    (folder / "segments-3-to-2.moving").touch()
    (folder / "77-0.rec").touch()
    before = contents(folder)
    code, out = run("delete-orphans", folder, "--yes")
    assert (code, "segments-3-to-2.moving: the archive died while it moved segments" in out) == (2, True)
    assert contents(folder) == before


def test_a_damaged_catalog_is_told_and_its_good_part_used(golden: Golden, run: Run) -> None:
    folder = golden("archive")
    with Catalog(folder) as catalog:
        entry = catalog.entries(6)[0]
    change(folder / "archive.catalog", entry.offset + 32 + 80, struct.pack("<i", 1 << 30))
    code, out = run("verify", folder)
    assert code == 1
    assert out.count(") OK") == 6
    assert "is no recording descriptor" in out
    for verb in ("compact", "delete-orphans"):
        code, out = run(verb, folder, "--yes")
        assert (code, "is no recording descriptor" in out) == (1, True)


def test_a_live_archive_is_looked_at_and_not_touched(servers: ArchivingMediaDriver, run: Run) -> None:
    folder = servers.archive_dir
    assert run("describe", folder)[0] == 0
    assert run("verify", folder)[0] == 0
    for verb, *arguments in (
        ("verify", "--repair"),
        ("checksum", "--checksum", "crc-32", "--yes"),
        ("compact", "--yes"),
        ("delete-orphans", "--yes"),
        ("migrate", "--yes"),
        ("mark-invalid", 0),
    ):
        code, out = run(verb, folder, *arguments)
        assert code == 2, (verb, out)
        assert "active mark file detected" in out
        assert "stop it first" in out


def test_a_copy_of_a_live_folder_is_told(servers: ArchivingMediaDriver, tmp_path: Path, run: Run) -> None:
    folder, copy = servers.archive_dir, tmp_path / "copy"
    with (
        Archive(aeron_dir=servers.aeron_dir) as archive,
        archive.client.add_publication("aeron:ipc?alias=torn", 5) as publication,
        archive.client.add_publication("aeron:ipc?alias=active", 6) as other,
    ):
        for stream in (publication, other):
            alias = "torn" if stream is publication else "active"
            archive.start_recording(f"aeron:ipc?alias={alias}", stream.stream_id)
            recording_id = archive.wait_recording(alias, stream.stream_id, stream.session_id)
            archive.wait_position(recording_id, stream.offer_batch([b"early"]))
        shutil.copytree(folder, copy)
        position = publication.offer_batch([b"late"] * 100)
        archive.wait_position(recording_id - 1, position)
        archive.stop_recording("aeron:ipc?alias=torn", 5)
        wait_until(lambda: archive.stop_position(recording_id - 1) is not None, 20, "the recording to stop")
        shutil.copy2(folder / "archive.catalog", copy)
        shutil.copy2(folder / "archive-mark.dat", copy)
        other.offer_batch([b"late"] * 100)
        assert run("verify", folder)[0] == 0
        code, out = run("verify", copy)
    assert code == 1
    assert f"before stopPosition={position}: bytes are missing" in out
    assert f"(recordingId={recording_id}) OK: was active when its archive died" in out
    assert f"ERR: {copy} is a copy that was made while its archive (pid {os.getpid()}) ran" in out
    assert f"aeron-spark archive backup; or keep what is whole: aeron-spark archive verify {copy} --repair" in out
    # As if the copy had been looked at a while later.
    with (copy / "archive-mark.dat").open("r+b") as mark:
        mark.seek(ACTIVITY_OFFSET)
        mark.write(struct.pack("<q", 1_700_000_000_000))
    assert f"ERR: {copy} is a copy that was made while its archive" in run("verify", copy)[1]
    assert "is a copy" not in run("verify", copy, "--repair")[1]
    assert run("verify", copy)[0] == 0


def test_no_archive_starts_while_a_tool_writes(golden: Golden) -> None:
    folder = golden("archive")
    mark = folder / "archive-mark.dat"
    before = mark.read_bytes()
    with Catalog(folder, writable=True):
        with pytest.raises(Exception, match="active mark file detected"):
            Catalog(folder, writable=True)
        assert struct.unpack_from("<q", mark.read_bytes(), ACTIVITY_OFFSET)[0] > 0
    assert mark.read_bytes() == before


def test_dump(golden: Golden, run: Run) -> None:
    folder = golden("archive")
    code, out = run("dump", folder, 1, "--frames", 0, "--json")
    frames = rows(out)
    assert code == 0
    assert len(frames) == 406
    ends = [int(str(frame["position"])) + (int(str(frame["frame_length"])) + 31) // 32 * 32 for frame in frames]
    assert [frame["position"] for frame in frames[1:]] == ends[:-1]
    assert ends[-1] == 422784
    assert any(frame["type"] == 0 and frame["payload"] == "" for frame in frames)
    code, out = run("dump", folder, 5, "--from", 263200, "--frames", 1)
    assert "Frame at position [263200] data at offset [1088] with length = 1000" in out
    assert "... --from 264256 goes on" in out
    for start, end, shown in (  # the frame at 263200 ends at 264256
        (263201, 264257, [264256]),
        (263232, 264256, []),
        (263200, 263201, [263200]),
        (263200, 263232, [263200]),
    ):
        code, out = run("dump", folder, 5, "--from", start, "--to", end, "--json")
        assert (code, [row["position"] for row in rows(out)]) == (0, shown), out
    code, out = run("dump", folder, 5, "--from", 999_999_968)
    assert (code, "goes from position" in out) == (2, True), out
    code, out = run("dump", folder, "--from", 64)
    assert (code, "name it" in out) == (2, True), out
    change(folder / "1-131072.rec", 16, struct.pack("<i", 77))
    code, out = run("dump", folder, "--frames", 0, "--no-payload")
    assert code == 1
    assert "recording 1 at position 131072" in out
    assert "recording 11, VALID" in out


@pytest.mark.parametrize("major", [0, 1, 2])
def test_migrate(golden: Golden, run: Run, major: int, tmp_path: Path) -> None:
    folder = golden("archive")
    new = {name: data for name, data in contents(folder).items() if name.endswith(".rec")}
    with Catalog(folder) as catalog:
        recordings = [(entry.recording, entry.state) for entry in catalog.entries()]
    downgrade(folder, major)
    code, out = run("describe", folder)
    assert (code, "incompatible catalog file version" in out) == (1, True)
    before = contents(folder)
    code, out = run("migrate", folder)
    assert (code, "nothing was changed" in out) == (0, True)
    assert contents(folder) == before
    code, out = run("migrate", folder, "--yes")
    assert code == 0, out
    assert out.count("Migration step to") == 3 - major
    assert {name: data for name, data in contents(folder).items() if name.endswith(".rec")} == new
    with Catalog(folder) as catalog:
        assert [(entry.recording, entry.state) for entry in catalog.entries()] == recordings
        assert catalog.info().next_recording_id == 12
    assert run("verify", folder, "-a")[0] == 0
    code, out = run("migrate", folder, "--yes")
    assert (code, "nothing to migrate" in out) == (0, True)


def test_a_migration_that_was_cut_short_is_told(golden: Golden, run: Run) -> None:
    folder = golden("archive")
    downgrade(folder, 2)
    (folder / "migration-131072-to-196608.dat").touch()
    before = contents(folder)
    code, out = run("migrate", folder, "--yes")
    assert (code, "begun before and cut short" in out) == (1, True)
    assert contents(folder) == before


def test_deleted_recordings_are_skipped(golden: Golden, run: Run) -> None:
    folder = golden("archive")
    code, out = run("verify", folder, 9)
    assert (code, out) == (0, "(recordingId=9) skipping: DELETED\n")
    with Catalog(folder) as catalog:
        assert catalog.entries(9)[0].state == RecordingState.DELETED
