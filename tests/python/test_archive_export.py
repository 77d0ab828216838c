"""Goal: an export holds exactly the messages of its ranges, appears whole or not at all, and its checksums are right.

Method: folders of stock archives (tests/golden/archive) exported by the command and read back by pyarrow, csv and json; what is
expected is what the folder's reader gives. Times are checked on an archive of ours with its time index.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import os
import random
import shutil
import stat
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from aeron_spark import Archive, ArchivingMediaDriver, DataLossError, Folder
from aeron_spark.archive.export import METADATA_KEY, Range, export, verify_export
from aeron_spark.archive.text_values import base64_text, hex_text
from aeron_spark.cli.__main__ import main
from aeron_spark.small_files import create_file
from tests.kit import packed, s3
from tests.kit.wait import wait_until
from tests.python.test_archive import record

GOLDEN = Path(__file__).parents[1] / "golden" / "archive"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    packed.unpack(GOLDEN / "archive.tar.gz", tmp_path)
    return tmp_path / "archive"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def archive_export(*arguments: object) -> tuple[int, str, str]:
        code = main(["archive", "export", *map(str, arguments)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return archive_export


Run = Callable[..., tuple[int, str, str]]


def rows_of(path: Path, *ids: int) -> list[dict[str, object]]:
    with Folder(path) as opened:
        chosen = ids or tuple(recording.recording_id for recording in opened.recordings())
        return [row for recording_id in chosen for batch in opened.read(recording_id) for row in batch.to_pylist()]


def digest(rows: list[dict[str, object]]) -> str:
    return hashlib.sha256(b"".join(bytes(row["value"]) for row in rows)).hexdigest()  # type: ignore[call-overload]


def test_parquet_of_all(folder: Path, run: Run, tmp_path: Path) -> None:
    expected = rows_of(folder)
    target = tmp_path / "all.parquet"
    code, out, _ = run(folder, "--out", target, "--verify", "--json", "--row-group-rows", 500)
    told = json.loads(out)
    assert (code, told["rows"], told["verified"]) == (0, len(expected), True)
    table = pq.read_table(target)
    assert table.to_pylist() == expected
    assert told["values_sha256"] == digest(expected)
    assert told["file_sha256"] == hashlib.sha256(target.read_bytes()).hexdigest()
    with pq.ParquetFile(target) as parquet:
        sizes = [parquet.metadata.row_group(index).num_rows for index in range(parquet.num_row_groups)]
        about = json.loads(parquet.schema_arrow.metadata[METADATA_KEY])
    assert max(sizes) <= 500
    assert [recording["recording_id"] for recording in about] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11]


@pytest.mark.parametrize("value", ["base64", "hex"])
def test_csv_and_json_lines(folder: Path, run: Run, tmp_path: Path, value: str) -> None:
    expected = rows_of(folder, 0, 3)
    decode = base64.b64decode if value == "base64" else bytes.fromhex
    for name in ("some.csv", "some.jsonl"):
        target = tmp_path / name
        code, out, _ = run(folder, 0, 3, "--out", target, "--value", value, "--verify")
        assert code == 0, out
        with target.open(newline="") as file:
            found = list(csv.DictReader(file)) if name.endswith("csv") else [json.loads(line) for line in file]
        assert [
            {key: decode(row[key]) if key == "value" else int(row[key]) for key in row} for row in found
        ] == expected
        assert digest(expected) in out


def test_ranges_columns_and_standard_output(
    folder: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    expected = [row for row in rows_of(folder, 1) if 131072 <= int(str(row["position"])) < 262144]
    target = tmp_path / "part.parquet"
    part = ["--from", "131072", "--to", "262144", "--columns", "value,position"]
    assert main(["archive", "export", str(folder), "1", "--out", str(target), *part]) == 0
    table = pq.read_table(target)
    assert table.column_names == ["value", "position"]
    assert table.to_pylist() == [{"value": row["value"], "position": row["position"]} for row in expected]
    capfdbinary.readouterr()
    assert main(["archive", "export", str(folder), "1", "--out", "-", "--format", "jsonl", "--from", "131072"]) == 0
    lines = capfdbinary.readouterr().out.splitlines()
    assert json.loads(lines[0])["position"] == expected[0]["position"]


def test_values_as_text(servers: ArchivingMediaDriver, run: Run, tmp_path: Path) -> None:
    texts = ["plain", "", 'quoted "and" \\ back', "lines\nand\ttabs\r\x01", "äöü \U0001f600", "comma, separated"]
    with Archive(aeron_dir=servers.aeron_dir) as archive:
        record(archive, [text.encode() for text in texts])
        record(archive, [b"fine", b"\xff not"], stream_id=5)
    target = tmp_path / "text.jsonl"
    assert run(servers.archive_dir, 0, "--out", target, "--value", "utf8", "--columns", "value")[0] == 0
    assert [json.loads(line)["value"] for line in target.read_text("utf-8").splitlines()] == texts
    target = tmp_path / "text.csv"
    assert run(servers.archive_dir, 0, "--out", target, "--value", "utf8")[0] == 0
    with target.open(newline="", encoding="utf-8") as file:
        assert [row["value"] for row in csv.DictReader(file)] == texts
    code, _, err = run(servers.archive_dir, 1, "--out", tmp_path / "bad.jsonl", "--value", "utf8")
    assert code == 2
    assert "the message that ends at position 128 is no UTF-8" in err
    assert not (tmp_path / "bad.jsonl").exists()


def test_every_address_of_a_recording_gives_the_same_file(
    servers: ArchivingMediaDriver, run: Run, tmp_path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Archive(aeron_dir=servers.aeron_dir) as archive:
        _, limit = record(archive, [rng.randbytes(rng.choice([8, 1000, 5000])) for _ in range(300)])
    with s3.store(servers.archive_dir) as store:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3.KEYS["access_key"])
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3.KEYS["secret_key"])
        written = set()
        for address in (servers.archive_dir, f"file://{servers.archive_dir}", "aeron:ipc", store.uri):
            target = tmp_path / f"{len(written)}.jsonl"
            part = (0, "--from", 0, "--to", limit, "--dir", servers.aeron_dir, "--overwrite")
            assert run(address, *part, "--out", target)[0] == 0, address
            written.add(target.read_bytes())
            target.unlink()
        assert len(written) == 1
        assert len(written.pop().splitlines()) == 300
        code, _, err = run(store.uri, 0, "--out", tmp_path / "times.csv", "--columns", "time")
        assert (code, "the time index is found in the archive's own folder only" in err) == (2, True)
    code, _, err = run("ftp://there/recordings", "--out", tmp_path / "x.csv")
    assert (code, "path: ftp: cannot be read, use a folder or one of s3" in err) == (2, True)


def test_encoders_are_those_of_python(rng: random.Random) -> None:
    values = [rng.randbytes(rng.choice([0, 1, 2, 3, 4, 5, 100, 1001])) for _ in range(500)]
    column = pa.array([b"before", *values, b"behind"], pa.binary()).slice(1, len(values))
    assert base64_text(column).to_pylist() == [base64.b64encode(value).decode() for value in values]
    assert hex_text(column).to_pylist() == [value.hex() for value in values]


def test_a_damaged_recording(folder: Path, run: Run, tmp_path: Path) -> None:
    whole, part = rows_of(folder, 0), [row for row in rows_of(folder, 1) if int(str(row["position"])) < 131072]
    with (folder / "1-131072.rec").open("r+b") as file:
        file.seek(16)
        file.write(b"\0\0\0\0")
    target = tmp_path / "out" / "some.parquet"
    target.parent.mkdir()
    code, _, err = run(folder, 1, 0, "--out", target)
    assert code == 1
    assert "recording 1 at position 131072" in err
    assert list(target.parent.iterdir()) == []
    code, _, err = run(folder, 1, 0, "--out", target, "--keep-going", "--verify")
    assert code == 1
    assert "recording 1 at position 131072" in err
    rows = pq.read_table(target).to_pylist()
    assert [row for row in rows if row["recording_id"] == 0] == whole
    found = [row for row in rows if row["recording_id"] == 1]
    # A message that goes on behind the damage is not whole.
    assert found == [row for row in part if int(str(row["next_position"])) <= 131072]


def test_wrong_usage_writes_nothing(folder: Path, run: Run, tmp_path: Path) -> None:
    there = tmp_path / "there.csv"
    there.write_text("mine")
    for arguments, text in (
        ((folder, "--out", there), "exists"),
        ((folder, "--out", tmp_path / "x.txt"), "the format is not told"),
        ((folder, "--out", "-", "--format", "parquet"), "not to standard output"),
        (
            (folder, "--out", tmp_path / "x.csv", "--columns", "value,positon"),
            "; did you mean position?",
        ),
        ((folder, "--out", tmp_path / "x.csv", "--columns", "value,value"), "must be different ones of"),
        ((folder, "--out", tmp_path / "x.csv", "--from", 64), "positions of one recording"),
        ((folder, 3, "--out", tmp_path / "x.csv", "--from", 64), "recording 3 goes from 200704 to 301248"),
        ((folder, 77, "--out", tmp_path / "x.csv"), "unknown recording id: 77"),
    ):
        code, _, err = run(*arguments)
        assert code == 2, arguments
        assert text in err
    assert there.read_text() == "mine"
    assert not (tmp_path / "x.csv").exists()
    code, _, err = run(folder, "--out", tmp_path / "no" / "x.csv")
    assert code == 1
    assert "No such file or directory" in err


def test_planted_links_are_not_written_through(folder: Path, run: Run, tmp_path: Path) -> None:
    """A file or link under the name, or under a guessed one, is replaced or refused; a link's target stays."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    out = tmp_path / "x.csv"
    (tmp_path / ".x.csv.part").symlink_to(victim)
    assert run(folder, "--out", out)[0] == 0
    out.unlink()
    out.symlink_to(victim)
    code, _, err = run(folder, "--out", out)
    assert (code, "exists" in err) == (2, True)
    out.unlink()
    out.symlink_to(tmp_path / "nowhere")
    assert run(folder, "--out", out)[0] == 2, "a link that leads nowhere is there all the same"
    out.unlink()
    out.symlink_to(victim)
    assert run(folder, "--out", out, "--overwrite")[0] == 0
    assert not out.is_symlink()
    assert victim.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".x.csv.part", "archive", "victim", "x.csv"]


@pytest.mark.parametrize(("umask", "mode"), [(0o000, 0o640), (0o022, 0o640), (0o077, 0o600)])
def test_an_export_is_no_wider_open_than_its_archive(
    folder: Path, run: Run, tmp_path: Path, umask: int, mode: int
) -> None:
    before = os.umask(umask)
    try:
        assert run(folder, "--out", tmp_path / "x.csv")[0] == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x.csv").stat().st_mode) == mode


def test_files_that_are_written(tmp_path: Path) -> None:
    own, link, target = tmp_path / "own", tmp_path / "link", tmp_path / "target"
    for text in (b"first", b"2"):
        with create_file(own) as file:
            file.write(text)
    assert own.read_bytes() == b"2"
    assert stat.S_IMODE(own.stat().st_mode) & ~0o640 == 0
    link.symlink_to(target)
    with create_file(link) as file:
        file.write(b"through one's own link")
    assert target.exists()
    if os.geteuid() == 0:
        os.chown(link, 65534, 65534, follow_symlinks=False)
        with pytest.raises(OSError, match="symbolic links"):
            create_file(link)


def test_a_changed_file_is_found(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "x.parquet"
    with Folder(folder) as opened:
        report = export(opened, [Range(recording_id=0, start=0, end=298752, limit=298752)], target)
    verify_export(target, report)
    data = bytearray(target.read_bytes())
    data[len(data) // 2] ^= 1
    target.write_bytes(data)
    with pytest.raises(DataLossError, match="export it again"):
        verify_export(target, report)


def test_progress_tells_rows_rate_and_time_left(folder: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    shutil.rmtree(folder / "messages")
    with Folder(folder) as opened:
        ranges = [
            Range(recording_id=one, start=extent.start_position, end=extent.limit_position, limit=extent.limit_position)
            for one in (0, 1)
            for extent in [opened.extent(one)]
        ]
        report = export(opened, ranges, tmp_path / "x.csv", on_progress=lambda done, rows: told.append((done, rows)))
    assert told == sorted(told)
    assert told[-1] == (298752 + 422784, report.rows)


def test_times(servers: ArchivingMediaDriver, run: Run, tmp_path: Path) -> None:
    with Archive(aeron_dir=servers.aeron_dir) as archive:
        archive.start_recording("aeron:ipc", 9)
        with archive.client.add_exclusive_publication("aeron:ipc", 9) as publication:
            recording_id = archive.wait_recording("aeron:ipc", 9, publication.session_id)
            publication.offer_batch([b"early"] * 10)
            archive.wait_position(recording_id, publication.position)
            between = publication.position
            # The index counts in intervals of 10 ms: the second half must not share one with the first.
            pause = time.time_ns() + 50_000_000
            wait_until(lambda: time.time_ns() > pause, 10, "50 ms to pass")
            middle = time.time_ns()
            publication.offer_batch([b"late"] * 10)
            archive.wait_position(recording_id, publication.position)
        archive.stop_recording("aeron:ipc", 9)
    for name in ("times.jsonl", "times.csv"):
        code, _, err = run(servers.archive_dir, recording_id, "--out", tmp_path / name, "--columns", "time,position")
        assert code == 0, err
    with (tmp_path / "times.csv").open(newline="") as file:
        told = [row["time"] for row in csv.DictReader(file)]
    assert told == [json.loads(line)["time"] for line in (tmp_path / "times.jsonl").read_text().splitlines()]
    seconds = [datetime.fromisoformat(one[:26]).replace(tzinfo=UTC).timestamp() for one in told]
    assert all(one * 1e9 < middle for one in seconds[:10])
    assert all(one * 1e9 > middle - 20_000_000 for one in seconds[10:])
    for arguments, values in (
        (("--from-time", middle), [b"late"] * 10),
        (("--to-time", middle), [b"early"] * 10),
        (("--from-time", middle + 3_600_000_000_000), []),
        (("--from-time", "2026-01-01T00:00:00+00:00"), [b"early"] * 10 + [b"late"] * 10),
    ):
        target = tmp_path / "times.parquet"
        code, _, err = run(servers.archive_dir, recording_id, "--out", target, "--overwrite", *arguments)
        assert code == 0, err
        assert [row["value"] for row in pq.read_table(target).to_pylist()] == values, (arguments, between)
