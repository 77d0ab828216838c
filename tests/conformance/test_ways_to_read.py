"""The same stream gives the same rows in every access mode: live, replayed, or from segment files, local or remote."""

from __future__ import annotations

import hashlib
import io
import itertools
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import fs
from pyspark.sql import SparkSession

from aeron_spark import Archive, ArchivingMediaDriver, Folder, ReplayLength
from aeron_spark.archive import objects
from aeron_spark.archive.objects import ObjectFolder
from aeron_spark.archive.remote import RemoteArchive, own_address
from aeron_spark.batch import FIELDS, Batches
from aeron_spark.cli.__main__ import main
from aeron_spark.errors import ClosedError, DataLossError, PeerError, UsageError
from aeron_spark.spark.lake import Landing
from aeron_spark.subscription import Subscription
from aeron_spark.tables import Scan, pandas, polars, scan, scans
from aeron_spark.tables import duckdb as duckdb_tables
from aeron_spark.types import Header
from tests.kit import require, s3
from tests.kit.ports import free_port
from tests.kit.wait import wait_until
from tests.spark.session import JAR

CHANNEL = "aeron:ipc?term-length=256k|alias=conformance"
STREAM = 1001
COLUMNS = ("position", "next_position", "reserved_value", "value")
SETTINGS = {
    "aeron.threading.mode": "SHARED",
    "aeron.archive.threading.mode": "SHARED",
    "aeron.archive.segment.file.length": "512k",
}


class Row(NamedTuple):
    """What must be equal in every way of reading."""

    position: int
    next_position: int
    reserved_value: int
    value: bytes


class Recorded(NamedTuple):
    """A finished recording and what its publisher knows about it."""

    archive: Archive
    folder: Path
    recording_id: int
    rows: list[Row]
    polled: list[tuple[int, bytes]]
    batched: list[Row]
    control_channel: str


@pytest.fixture(scope="module")
def recorded(module_rng: random.Random, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    """Messages of every kind (empty, one frame, fragments, term ends), read live in both ways while published."""
    folder = tmp_path_factory.mktemp("archive")
    control_channel = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    settings = {
        **SETTINGS,
        "aeron.archive.control.channel": control_channel,
        "aeron.archive.control.channel.enabled": "true",
    }
    messages = [
        module_rng.randbytes(module_rng.choice([0, 1, 31, 32, 33, 1000, 1375, 1376, 1377, 8000])) for _ in range(1500)
    ]
    with (
        ArchivingMediaDriver(folder / "archive", folder / "aeron", settings=settings) as servers,
        Archive(aeron_dir=servers.aeron_dir) as archive,
        archive.client.add_subscription(CHANNEL, STREAM) as polling,
        archive.client.add_subscription(CHANNEL, STREAM) as batching,
    ):
        archive.start_recording(CHANNEL, STREAM)
        rows: list[Row] = []
        polled: list[tuple[int, bytes]] = []
        batched: list[Row] = []
        with archive.client.add_exclusive_publication(CHANNEL, STREAM) as publication:
            publication.wait_connected(10)
            recording_id = archive.wait_recording("conformance", STREAM, publication.session_id)
            for number, message in enumerate(messages):
                end = publication.offer_batch([message], reserved_values=[number * 1_000_003])
                rows.append(Row(-1, end, number * 1_000_003, message))
                if number % 7 == 0:
                    take(polling, polled)
                    batched += as_rows(batching.poll_batch(columns=COLUMNS).to_pylist())
            wait_until(lambda: take(polling, polled) or len(polled) == len(messages), 10, "the polling subscriber")
            wait_until(
                lambda: (
                    batched.extend(as_rows(batching.poll_batch(columns=COLUMNS).to_pylist()))
                    or len(batched) == len(rows)
                ),
                10,
                "the batching subscriber",
            )
            archive.wait_position(recording_id, publication.position)
            archive.stop_recording(CHANNEL, STREAM)
        yield Recorded(archive, servers.archive_dir, recording_id, rows, polled, batched, control_channel)


def take(subscription: Subscription, into: list[tuple[int, bytes]]) -> None:
    def on_message(message: bytes, header: Header) -> None:
        into.append((header.position, message))

    subscription.poll(on_message)


def as_rows(found: list[dict[str, object]]) -> list[Row]:
    return [Row(**row) for row in found]  # type: ignore[arg-type]


def replayed(recorded: Recorded) -> list[Row]:
    with recorded.archive.replay(recorded.recording_id, length=ReplayLength.CURRENT_END) as replay:
        return [row for batch in replay.batches(columns=COLUMNS) for row in as_rows(batch.to_pylist())]


def from_segments(recorded: Recorded) -> list[Row]:
    with Folder(recorded.folder) as folder:
        batches = folder.read(recorded.recording_id, columns=COLUMNS)
        return [row for batch in batches for row in as_rows(batch.to_pylist())]


def from_split_segments(recorded: Recorded) -> list[Row]:
    rows: list[Row] = []
    with Folder(recorded.folder) as folder:
        extent = folder.extent(recorded.recording_id)
        starts = folder.split(recorded.recording_id, extent.start_position, extent.limit_position, 10_000)
        for low, high in zip(starts, [*starts[1:], extent.limit_position], strict=True):
            for batch in folder.read(recorded.recording_id, low, high, columns=COLUMNS, row_capacity=5):
                rows += as_rows(batch.to_pylist())
    return rows


@contextmanager
def remote(recorded: Recorded) -> Iterator[RemoteArchive]:
    """The archive over UDP, with a client of its own."""
    here = f"aeron:udp?endpoint={own_address(recorded.control_channel)}:0"
    with Archive(
        aeron_dir=recorded.archive.client.aeron_dir, control_channel=recorded.control_channel, response_channel=here
    ) as archive:
        yield RemoteArchive(archive, here)


@contextmanager
def local_store(recorded: Recorded) -> Iterator[ObjectFolder]:
    """A folder of segments by pyarrow's filesystem for local ones."""
    yield ObjectFolder(fs.LocalFileSystem(), str(recorded.folder))


@contextmanager
def s3_store(recorded: Recorded) -> Iterator[ObjectFolder]:
    """A bucket of a server that speaks S3, with a prefix."""
    with s3.store(recorded.folder) as store:
        yield ObjectFolder(store.filesystem, store.prefix)


FAR = {"replay over udp": remote, "local store": local_store, "s3": s3_store}


@pytest.fixture(params=FAR)
def far(request: pytest.FixtureRequest, recorded: Recorded) -> Iterator[RemoteArchive | ObjectFolder]:
    with FAR[request.param](recorded) as store:
        yield store


@pytest.fixture
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many windows and requests in a small recording."""
    monkeypatch.setattr(objects, "WINDOW_BYTES", 1)
    monkeypatch.setattr(objects, "REQUEST_BYTES", 50_000)


def test_live_polls_give_what_was_published(recorded: Recorded) -> None:
    assert recorded.polled == [(row.next_position, row.value) for row in recorded.rows]
    assert [row._replace(position=-1) for row in recorded.batched] == recorded.rows


@pytest.mark.parametrize("way", [replayed, from_segments, from_split_segments])
def test_recorded_ways_give_what_came_live(recorded: Recorded, way: Callable[[Recorded], list[Row]]) -> None:
    assert way(recorded) == recorded.batched


def rows_of(
    store: Folder | RemoteArchive | ObjectFolder, recording_id: int, low: int, high: int, **options: int
) -> list[Row]:
    batches = store.read(recording_id, low, high, columns=COLUMNS, **options)  # type: ignore[arg-type]
    return [row for batch in batches for row in as_rows(batch.to_pylist())]


def test_far_recordings_are_those_of_the_folder(recorded: Recorded, far: RemoteArchive | ObjectFolder) -> None:
    with Folder(recorded.folder) as folder:
        assert far.recordings() == folder.recordings()
        assert far.extent(recorded.recording_id) == folder.extent(recorded.recording_id)
    with pytest.raises(UsageError, match="77"):
        far.recording(77)


@pytest.mark.usefixtures("small_windows")
def test_far_recordings_give_what_came_live(recorded: Recorded, far: RemoteArchive | ObjectFolder) -> None:
    assert [
        row for batch in far.read(recorded.recording_id, columns=COLUMNS) for row in as_rows(batch.to_pylist())
    ] == (recorded.batched)
    columns = ("recording_id", "session_id", "stream_id", "term_id", "term_offset", "flags", "position")
    with Folder(recorded.folder) as folder:
        expected = [row for batch in folder.read(recorded.recording_id, columns=columns) for row in batch.to_pylist()]
    assert [row for batch in far.read(recorded.recording_id, columns=columns) for row in batch.to_pylist()] == expected


@pytest.mark.usefixtures("small_windows")
def test_far_ranges_hold_what_begins_in_them(
    recorded: Recorded, far: RemoteArchive | ObjectFolder, rng: random.Random
) -> None:
    """Cut at boundaries: by split, by steps of advance with bounds of bytes or messages, and at random places moved there."""
    recording_id = recorded.recording_id
    extent = far.extent(recording_id)
    start, limit = extent.start_position, extent.limit_position
    cuts = [*far.split(recording_id, start, limit, 300_000), limit]
    assert len(cuts) > 5
    stepped = [start]
    while stepped[-1] < limit:
        bound = {"max_bytes": rng.randint(1, 400_000)} if rng.random() < 0.5 else {"max_messages": rng.randint(1, 300)}
        stepped.append(far.advance(recording_id, stepped[-1], limit, **bound))
        assert stepped[-1] > stepped[-2]
        if "max_messages" in bound:
            taken = [row for row in recorded.batched if stepped[-2] <= row.position < stepped[-1]]
            assert 1 <= len(taken) <= bound["max_messages"]
    boundaries = {row.position for row in recorded.batched} | {row.next_position for row in recorded.batched}
    moved = [start, limit]
    for _ in range(6):
        position = rng.randint(start, limit)
        after = far.align(recording_id, position, limit)
        before = far.align(recording_id, position, limit, back=True)
        assert before <= position <= after
        assert after <= min(boundary for boundary in boundaries if boundary >= position)
        assert before >= max(boundary for boundary in boundaries if boundary <= position)
        moved += [before, after]
    for positions in (cuts, stepped, sorted(set(moved))):
        rows = []
        for low, high in itertools.pairwise(positions):
            rows += rows_of(far, recording_id, low, high, limit=limit)
        assert rows == recorded.batched


def test_far_recordings_are_read_from_any_position(
    recorded: Recorded, far: RemoteArchive | ObjectFolder, rng: random.Random
) -> None:
    limit = recorded.batched[-1].next_position
    for _ in range(6):
        low, high = sorted(rng.sample(range(limit), 2))
        expected = [row for row in recorded.batched if low <= row.position < high]
        assert rows_of(far, recorded.recording_id, low, high, limit=limit) == expected


def test_detached_segments_are_a_recording_of_their_own(recorded: Recorded, tmp_path: Path) -> None:
    """A store of the first two segments, with the catalog as it is after detaching them."""
    with Folder(recorded.folder) as folder:
        recording = folder.recording(recorded.recording_id)
    shutil.copy(recorded.folder / objects.CATALOG, tmp_path)
    for name in (f"{recorded.recording_id}-{n * recording.segment_file_length}.rec" for n in (1, 2)):
        shutil.copy(recorded.folder / name, tmp_path)
    store = ObjectFolder(fs.LocalFileSystem(), str(tmp_path))
    extent = store.extent(recorded.recording_id)
    assert (extent.start_position, extent.limit_position) == (
        recording.segment_file_length,
        3 * recording.segment_file_length,
    )
    expected = [row for row in recorded.batched if extent.start_position <= row.position < extent.limit_position]
    assert rows_of(store, recorded.recording_id, extent.start_position, extent.limit_position) == expected


def test_a_store_that_lacks_bytes_says_so(recorded: Recorded, tmp_path: Path) -> None:
    with pytest.raises(DataLossError, match=r"has no archive\.catalog"):
        ObjectFolder(fs.LocalFileSystem(), str(tmp_path))
    for file in recorded.folder.glob("*.*"):
        if file.suffix in {".rec", ".catalog"}:
            shutil.copy(file, tmp_path)
    recording_id = recorded.recording_id
    second = sorted(tmp_path.glob(f"{recording_id}-*.rec"), key=lambda path: int(path.stem.partition("-")[2]))[1]
    whole = second.read_bytes()
    second.unlink()
    with pytest.raises(DataLossError, match=rf"{second.name} is missing"):
        list(ObjectFolder(fs.LocalFileSystem(), str(tmp_path)).read(recording_id))
    second.write_bytes(whole[:-1])
    with pytest.raises(DataLossError, match=rf"{second.name} is {len(whole) - 1} bytes long"):
        ObjectFolder(fs.LocalFileSystem(), str(tmp_path))
    second.write_bytes(whole[:1000] + bytes(len(whole) - 1000))
    with pytest.raises(DataLossError, match=str(tmp_path)):
        list(ObjectFolder(fs.LocalFileSystem(), str(tmp_path)).read(recording_id))
    second.rename(tmp_path / f"{recording_id}-4096.rec")
    with pytest.raises(DataLossError, match="is no segment of recording"):
        ObjectFolder(fs.LocalFileSystem(), str(tmp_path))


def test_a_replay_that_the_archive_ends_is_no_end_of_the_data(recorded: Recorded) -> None:
    with remote(recorded) as store:
        reading = store.read(recorded.recording_id, columns=COLUMNS, row_capacity=1)
        next(reading)
        recorded.archive.stop_all_replays(recorded.recording_id)
        with pytest.raises(PeerError, match="ended at position"):
            list(reading)


@pytest.fixture(scope="module")
def cut_short(recorded: Recorded) -> Recorded:
    """A recording that was truncated inside its second message."""
    archive, channel = recorded.archive, "aeron:ipc?mtu=1408|alias=cut-short"
    archive.start_recording(channel, STREAM, auto_stop=True)
    with archive.client.add_exclusive_publication(channel, STREAM) as publication:
        publication.wait_connected(10)
        recording_id = archive.wait_recording("cut-short", STREAM, publication.session_id)
        archive.wait_position(recording_id, publication.offer_batch([b"whole".ljust(32), bytes(9000)]))
    wait_until(lambda: archive.stop_position(recording_id), 10, "the end of the recording")
    archive.truncate_recording(recording_id, 64 + 3 * 1408)
    return recorded._replace(recording_id=recording_id)


@pytest.mark.parametrize("way", [replayed, from_segments, from_split_segments])
def test_a_message_that_was_cut_is_passed_over(cut_short: Recorded, way: Callable[[Recorded], list[Row]]) -> None:
    assert way(cut_short) == [Row(0, 64, 0, b"whole".ljust(32))]


def test_a_message_that_was_cut_is_passed_over_from_afar(
    cut_short: Recorded, far: RemoteArchive | ObjectFolder
) -> None:
    extent = far.extent(cut_short.recording_id)
    assert extent.limit_position == 64 + 3 * 1408
    assert rows_of(far, cut_short.recording_id, 0, extent.limit_position) == [Row(0, 64, 0, b"whole".ljust(32))]
    assert rows_of(far, cut_short.recording_id, 64, extent.limit_position) == []


@pytest.mark.parametrize("position", [0, 64])
def test_a_replay_may_end_inside_a_message(cut_short: Recorded, position: int) -> None:
    with cut_short.archive.replay(cut_short.recording_id, position=position, length=1408) as replay:
        assert sum(batch.num_rows for batch in replay.batches()) == (position == 0)


# -- streams of Arrow data ---------------------------------------------------------------------------------------------------


@contextmanager
def near(recorded: Recorded) -> Iterator[Folder]:
    with Folder(recorded.folder) as folder:
        yield folder


STORES = {"folder": near, **FAR}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, recorded: Recorded) -> Iterator[Folder | RemoteArchive | ObjectFolder]:
    with STORES[request.param](recorded) as opened:
        yield opened


def expected_table(recorded: Recorded) -> pa.Table:
    schema = pa.schema([FIELDS[name] for name in COLUMNS])
    return pa.Table.from_pylist([row._asdict() for row in recorded.batched], schema)


TAKEN_BY: dict[str, Callable[[Batches], pa.Table]] = {
    "read_all": lambda batches: batches.read_all(),
    "pyarrow": pa.table,
    "pyarrow reader": lambda batches: pa.RecordBatchReader.from_stream(batches).read_all(),
    "polars": lambda batches: pl.DataFrame(batches).to_arrow(),
    "duckdb": lambda batches: duckdb.from_arrow(batches).to_arrow_table(),
    "iteration": pa.Table.from_batches,
}


@pytest.mark.usefixtures("small_windows")
@pytest.mark.parametrize("taken_by", TAKEN_BY)
def test_a_recording_is_a_stream_of_arrow_data(
    recorded: Recorded, store: Folder | RemoteArchive | ObjectFolder, taken_by: str
) -> None:
    expected = expected_table(recorded)
    batches = store.read(recorded.recording_id, columns=COLUMNS, row_capacity=100)
    assert batches.schema == expected.schema
    found = TAKEN_BY[taken_by](batches)
    assert found.cast(expected.schema).to_pylist() == expected.to_pylist()
    # A second pass is an error: no rows would look like an empty recording.
    for again in (batches.read_all, batches.__arrow_c_stream__):
        with pytest.raises(ClosedError, match="read again"):
            again()
    assert list(batches) == []


def test_a_replay_is_a_stream_of_arrow_data(recorded: Recorded) -> None:
    expected = expected_table(recorded)
    with recorded.archive.replay(recorded.recording_id, length=ReplayLength.CURRENT_END) as replay:
        batches = replay.batches(columns=COLUMNS)
        assert batches.schema == expected.schema
        assert batches.read_all().equals(expected)


def test_what_is_left_of_a_stream_and_a_range_without_rows(
    recorded: Recorded, store: Folder | RemoteArchive | ObjectFolder
) -> None:
    expected = expected_table(recorded)
    batches = store.read(recorded.recording_id, columns=COLUMNS, row_capacity=10)
    first = next(batches)
    assert batches.read_all().equals(expected.slice(first.num_rows))
    limit = recorded.batched[-1].next_position
    empty = store.read(recorded.recording_id, limit, limit, limit=limit, columns=COLUMNS).read_all()
    assert (empty.num_rows, empty.schema) == (0, expected.schema)


# -- Spark's JVM -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"maxBytesPerPartition": "10k", "rowsPerBatch": "5"}], ids=str)
@pytest.mark.parametrize("engine", ["jvm", "python"])
def test_spark_gives_what_came_live(
    recorded: Recorded, spark: SparkSession, engine: str, options: dict[str, str]
) -> None:
    """By its workers, and by its JVM, which reads segments."""
    if engine == "jvm" and not JAR:
        require.missing("the jar of Spark's JVM, which `make build` makes where there is a JDK of Java 17 or newer")
    given = {"engine": engine, "recordingIds": str(recorded.recording_id), "columns": ",".join(COLUMNS), **options}
    frame = spark.read.format("aeron").options(**given).load(str(recorded.folder))
    assert ("engine=jvm" in str(frame._jdf.queryExecution().executedPlan().toString())) == (engine == "jvm")
    assert [Row(*row) for row in frame.orderBy("position").collect()] == recorded.batched


# -- tables ------------------------------------------------------------------------------------------------------------------


def digest(table: pa.Table) -> tuple[int, str]:
    """Number of rows, and a hash of all that must be equal in every way of reading."""
    found = hashlib.sha256()
    for row in table.select(COLUMNS).to_pylist():
        found.update(repr(tuple(row.values())).encode())
    return table.num_rows, found.hexdigest()


def of_pandas(table: Scan) -> pa.Table:
    frame = pandas.read_aeron(table, dtype_backend="pyarrow")
    return pa.Table.from_pandas(frame, schema=table.schema, preserve_index=False)


AS_TABLE: dict[str, Callable[[Scan], pa.Table]] = {
    "batches": lambda table: pa.Table.from_batches(table, table.schema),
    "to_table": lambda table: table.to_table(),
    "arrow stream": pa.table,
    "pandas": of_pandas,
    "polars": lambda table: polars.scan_aeron(table).collect().to_arrow(),
    "polars, streaming": lambda table: polars.scan_aeron(table).collect(engine="streaming").to_arrow(),
    "duckdb": lambda table: duckdb_tables.from_aeron(table).to_arrow_table(),
    "duckdb, filtered": lambda table: duckdb_tables.from_aeron(table).filter("position >= 0").to_arrow_table(),
}


@pytest.mark.usefixtures("small_windows")
def test_a_scan_gives_what_came_live(
    recorded: Recorded, store: Folder | RemoteArchive | ObjectFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scans, "PIECE_BYTES", 100_000)
    table = scan(store, recorded.recording_id, columns=COLUMNS)
    expected = digest(expected_table(recorded))
    for taken_by, take in AS_TABLE.items():
        assert digest(take(table)) == expected, taken_by
    followed = scan(store, recorded.recording_id, columns=COLUMNS, follow=True, batch_rows=300)
    assert digest(followed.to_table()) == expected


def test_the_lakes_table_gives_what_came_live(recorded: Recorded, spark: SparkSession, tmp_path: Path) -> None:
    """Landed in Parquet, and as the view before anything has landed."""
    options = {"path": str(recorded.folder), "recordingIds": str(recorded.recording_id)}
    options["columns"] = ",".join(("recording_id", *COLUMNS))
    table = Landing(tmp_path)
    expected = digest(expected_table(recorded))
    assert digest(table.view(spark, options).orderBy("position").toArrow()) == expected
    table.land(spark.read.format("aeron").options(**options).load(), 0)
    assert digest(table.table(spark).orderBy("position").toArrow()) == expected


def test_cat_gives_what_came_live(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the folder, the archive and a store, by their addresses."""
    aeron_dir = str(recorded.archive.client.aeron_dir)
    with s3.store(recorded.folder) as store:
        for name, value in (("AWS_ACCESS_KEY_ID", "access_key"), ("AWS_SECRET_ACCESS_KEY", "secret_key")):
            monkeypatch.setenv(name, s3.KEYS[value])
        for address in (str(recorded.folder), recorded.control_channel, store.uri):
            out = io.TextIOWrapper(io.BytesIO(), write_through=True)
            monkeypatch.setattr(sys, "stdout", out)
            words = ["cat", address, str(recorded.recording_id), "--format", "arrow", "--dir", aeron_dir]
            assert main([*words, "--columns", ",".join(COLUMNS)]) == 0
            printed = pa.ipc.open_stream(out.buffer.getvalue()).read_all()  # type: ignore[attr-defined]
            assert digest(printed) == digest(expected_table(recorded)), address


def test_filters_select_the_same_everywhere(recorded: Recorded, store: Folder | RemoteArchive | ObjectFolder) -> None:
    """By position, which narrows what is read, and by the reserved value; as text, and the last ones."""
    expected = expected_table(recorded)
    low, high = (expected["position"][row].as_py() for row in (400, 700))
    between = scan(store, recorded.recording_id, columns=COLUMNS, filter=f"position >= {low} and position < {high}")
    assert between.to_table().equals(expected.slice(400, 300))
    assert low <= between.ranges()[0].end <= between.ranges()[-1].end < expected["position"][-1].as_py()
    stamped = scan(store, recorded.recording_id, columns=COLUMNS, filter="reserved_value < 3000009")
    assert stamped.to_table().equals(expected.slice(0, 3))
    assert scan(store, recorded.recording_id, columns=COLUMNS, last=5).to_table().equals(expected.slice(1495))


def test_a_live_scan_gives_what_is_published(recorded: Recorded) -> None:
    client, channel, stream = recorded.archive.client, "aeron:ipc?alias=live-table", STREAM + 1
    with (
        client.add_subscription(channel, stream) as subscription,
        client.add_exclusive_publication(channel, stream) as publication,
    ):
        publication.wait_connected(10)
        batches = scan(subscription, columns=COLUMNS, batch_seconds=0.01).batches()
        found = []
        for first in range(0, len(recorded.rows), 100):
            part = recorded.rows[first : first + 100]
            publication.offer_batch([row.value for row in part], reserved_values=[row.reserved_value for row in part])
            found.append(next(batches))
        publication.close()
        found += batches
    live = [row._replace(position=-1, next_position=-1) for row in as_rows(pa.Table.from_batches(found).to_pylist())]
    assert live == [row._replace(position=-1, next_position=-1) for row in recorded.rows]


def mapped_below(folder: Path) -> bool:
    """Whether this process has a window of a store in memory, which is a file without a name."""
    return str(folder) in Path("/proc/self/maps").read_text("utf-8")


@pytest.mark.usefixtures("small_windows")
@pytest.mark.parametrize("how", ["close", "with", "break", "unread"])
def test_a_stream_that_is_left_early_frees_what_it_reads_from(
    recorded: Recorded,
    store: Folder | RemoteArchive | ObjectFolder,
    how: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))  # where windows of far segments lie
    owner = store if isinstance(store, Folder) else recorded.archive.client
    owner = store._archive.client if isinstance(store, RemoteArchive) else owner
    before = len(owner._children)
    batches = store.read(recorded.recording_id, columns=COLUMNS, row_capacity=10)
    if how == "break":
        for _ in batches:
            break
        assert mapped_below(tmp_path) == isinstance(store, ObjectFolder)
        del batches
    elif how == "with":
        with batches:
            assert next(batches).num_rows == 10
    else:
        if how == "close":
            next(batches)
        batches.close()
        batches.close()
        with pytest.raises(ClosedError, match="read again"):
            batches.read_all()
    assert len(owner._children) == before
    assert not mapped_below(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_a_stream_is_the_one_of_iteration(recorded: Recorded, tmp_path: Path) -> None:
    for file in recorded.folder.glob("*.*"):
        if file.suffix in {".rec", ".catalog"}:
            shutil.copy(file, tmp_path)
    names = sorted(tmp_path.glob(f"{recorded.recording_id}-*.rec"), key=lambda path: int(path.stem.partition("-")[2]))
    names[1].unlink()
    store = ObjectFolder(fs.LocalFileSystem(), str(tmp_path))
    with pytest.raises(DataLossError, match=f"{names[1].name} is missing"):
        store.read(recorded.recording_id).read_all()
    with pytest.raises(pa.ArrowInvalid, match=f"{names[1].name} is missing"):
        pa.table(store.read(recorded.recording_id))
    with pytest.raises(duckdb.Error, match=f"{names[1].name} is missing"):
        duckdb.from_arrow(store.read(recorded.recording_id)).fetchall()
    with pytest.raises(pl.exceptions.ComputeError, match=f"{names[1].name} is missing"):
        pl.DataFrame(store.read(recorded.recording_id))


def test_columns_that_there_are_not_are_told_before_anything_is_read(
    recorded: Recorded, store: Folder | RemoteArchive | ObjectFolder
) -> None:
    with pytest.raises(UsageError, match=r"column 'valu'.*did you mean value"):
        store.read(recorded.recording_id, columns=["valu"])
