"""Landing in a table: each micro-batch once, dead letters beside it, compaction, new versions of the schema, the view.

Method: folders of recorded SBE messages are landed by hand as `foreachBatch` would do it, repeated and in the wrong order;
a query is killed, into each kind of table (short form of lake_kills.py), and a view is read while segments are deleted (of
lake_view.py).
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from aeron_spark.errors import StorageError, UsageError
from aeron_spark.spark.lake import Landing, bounds_of, live_from, rows_after
from aeron_spark.tables import scan
from aeron_spark.testing import RecordedFolder, Servers
from tests.spark.lake_kills import OPTIONS, SCHEMA, digest, lake_kills, quote
from tests.spark.lake_tables import KINDS, OF_ERRORS
from tests.spark.lake_view import lake_view

COUNT = 1000


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Two recordings of quotes, each hundredth of them cut off."""
    with Servers() as servers:
        written = RecordedFolder(servers)
        for first in (0, COUNT):
            written.write([quote(index) for index in range(first, first + COUNT)])
        yield servers.archive_dir


def quotes(spark: SparkSession, folder: Path, **options: str) -> DataFrame:
    return spark.read.format("aeron").options(**{**OPTIONS, **options}).load(str(folder))


def batches(spark: SparkSession, folder: Path, count: int) -> list[DataFrame]:
    """The recordings in micro-batches: parts of both by position."""
    size = 96 * COUNT // count
    parts = [(part * size, (part + 1) * size if part < count - 1 else 1 << 40) for part in range(count)]
    every = quotes(spark, folder)
    return [every.where(f"position >= {low} and position < {high}") for low, high in parts]


def landed(spark: SparkSession, folder: Path, table: Landing, count: int = 5) -> None:
    for batch_id, rows in enumerate(batches(spark, folder, count)):
        table.land(rows, batch_id)


def names(table: Path) -> list[str]:
    return sorted(path.name for path in table.iterdir() if path.suffix != ".lock")


def test_a_table_has_each_row_once_and_what_is_none(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    table = Landing(tmp_path)
    assert table.bounds() == {}
    assert table.dead_letters(spark) is None
    with pytest.raises(UsageError, match="no row has landed yet"):
        table.table(spark)
    landed(spark, folder, table)
    table.land(batches(spark, folder, 5)[4], 4)
    assert names(tmp_path) == [f"batches-{batch}-{batch}" for batch in range(5)]
    good = quotes(spark, folder).where("sbe_error is null").drop("sbe_error", "sbe_error_at", "sbe_raw")
    assert digest(table.table(spark)) == digest(good)
    assert good.count() == 2 * COUNT * 99 // 100
    dead = table.dead_letters(spark)
    assert dead is not None
    found = sorted((row.recording_id, row.position, bytes(row.sbe_raw)) for row in dead.collect())
    assert [raw for _, _, raw in found] == [quote(index) for index in range(0, 2 * COUNT, 100)]
    ends = scan(folder).to_table(columns=["recording_id", "position", "next_position"])
    assert table.bounds() == bounds_of(ends)


def test_the_rows_are_those_of_a_scan(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    """Of the reader without Spark: the same values of the fields."""
    table = Landing(tmp_path)
    landed(spark, folder, table)
    fields = ["recording_id", "position", "time", "symbol", "bid", "ask", "venue"]
    of_scan = scan(folder, columns=fields, sbe=SCHEMA, message="Quote", sbe_options={"on_error": "drop"}).to_table()
    of_table = table.table(spark).select(fields).orderBy("recording_id", "position").toArrow()
    assert of_table.to_pylist() == of_scan.to_pylist()


def test_compaction_changes_no_row_and_deletes_what_it_replaced_the_next_time(
    spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    table = Landing(tmp_path)
    landed(spark, folder, table)
    rows, bounds = digest(table.table(spark)), table.bounds()
    before = table.table(spark)
    assert table.compact(spark) == 4
    assert [digest(frame) for frame in (before, table.table(spark))] == [rows, rows]
    assert table.bounds() == bounds
    assert len(names(tmp_path)) == 6
    assert table.compact(spark) == 0
    assert names(tmp_path) == ["batches-0-3", "batches-4-4"]
    dead = table.dead_letters(spark)
    assert dead is not None
    assert dead.count() == 2 * COUNT // 100
    # Folders that are large enough are left as they are.
    rest = quotes(spark, folder).where("false")
    for batch_id in (5, 6, 7):
        table.land(rest, batch_id)
    assert table.compact(spark, target_bytes=1) == 2
    assert names(tmp_path)[:4] == ["batches-0-3", "batches-4-4", "batches-5-5", "batches-5-6"]
    assert digest(table.table(spark)) == rows


def test_a_compaction_makes_no_folder(spark: SparkSession, tmp_path: Path) -> None:
    """A mistyped path is an error, and not a table of which nothing is to be put together."""
    (tmp_path / "other").mkdir()
    (tmp_path / "file").touch()
    for name in ("absent", "other", "file"):
        text = f"{tmp_path / name}: no micro-batch has landed yet, so there is no table: start the query, or"
        with pytest.raises(UsageError, match=re.escape(text)):
            Landing(tmp_path / name).compact(spark)
    assert names(tmp_path) == ["file", "other"]
    assert names(tmp_path / "other") == []


class Meanwhile(Landing):
    """A table of whose listings the first ones lack folders, and behind whose first one something happens."""

    def __init__(self, folder: Path, *, lacks: Sequence[str] = (), then: Callable[[], object] = lambda: None) -> None:
        super().__init__(folder)
        self._lacks, self._then = list(lacks), [then]

    def _folders(self) -> Iterator[Any]:
        lacking = self._lacks.pop(0) if self._lacks else None
        yield from [part for part in super()._folders() if part.path.name != lacking]
        while self._then:
            self._then.pop()()


def test_a_batch_that_lands_beside_a_compaction_stays(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    table, parts = Landing(tmp_path), batches(spark, folder, 5)
    for batch_id in range(3):
        table.land(parts[batch_id], batch_id)
    assert Meanwhile(tmp_path, then=lambda: table.land(parts[3], 3)).compact(spark) == 2
    assert names(tmp_path) == ["batches-0-0", "batches-0-1", "batches-1-1", "batches-2-2", "batches-3-3"]
    table.land(parts[4], 4)
    assert table.table(spark).count() == 2 * COUNT * 99 // 100


def test_a_compaction_deletes_only_what_a_wider_folder_has(spark: SparkSession, tmp_path: Path) -> None:
    """Two compactions at once leave folders that overlap; one that was killed leaves part of a folder."""
    for first, last in ((0, 0), (0, 2), (1, 1), (2, 2), (2, 3), (3, 3), (4, 4)):
        made = tmp_path / f"batches-{first}-{last}"
        made.mkdir()
        (made / "_bounds.json").write_text(f'{{"0": {last + 1}}}', "ascii")
    (tmp_path / "batches-1-1" / "_bounds.json").unlink()
    table = Landing(tmp_path)
    assert table.bounds() == {0: 5}
    assert table.compact(spark, target_bytes=0) == 0
    assert names(tmp_path) == ["batches-0-2", "batches-2-3", "batches-3-3", "batches-4-4"]
    assert table.bounds() == {0: 5}


def test_what_another_writes_is_not_deleted(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    """A second compaction, or query, would take what the first one writes for the remains of a dead one."""
    table, parts = Landing(tmp_path), batches(spark, folder, 3)

    def beside() -> None:
        for kind, call in (("land", lambda: table.land(parts[2], 2)), ("compact", lambda: table.compact(spark))):
            (tmp_path / f"_{kind}ing-0").mkdir()
            with pytest.raises(UsageError, match=f"something else calls {kind} of this table: wait for its end"):
                call()
            assert (tmp_path / f"_{kind}ing-0").exists()

    for batch_id in range(2):
        table.land(parts[batch_id], batch_id)
    compacting = Meanwhile(tmp_path, then=lambda: Meanwhile(tmp_path, then=beside).land(parts[2], 2))
    assert compacting.compact(spark) == 0
    assert table.compact(spark) == 2
    assert table.bounds() == Landing(tmp_path).bounds()


def test_a_child_that_is_forked_while_a_batch_lands_does_not_keep_the_table(tmp_path: Path) -> None:
    table = Landing(tmp_path)
    waits, ends = os.pipe()
    with table._alone("land"):
        child = os.fork()
        if child == 0:
            os.close(ends)
            os.read(waits, 1)
            os._exit(0)
    try:
        with table._alone("land"):
            pass
    finally:
        os.close(ends)
        os.waitpid(child, 0)
        os.close(waits)


def test_a_listing_beside_a_rename_is_no_loss(tmp_path: Path) -> None:
    """It has a folder without the one before: a gap that another listing does not have. One that stays is a loss."""
    for batch in range(12):
        (tmp_path / f"batches-{batch}-{batch}").mkdir()
        (tmp_path / f"batches-{batch}-{batch}" / "_bounds.json").write_text(f'{{"0": {batch}}}', "ascii")
    assert Meanwhile(tmp_path, lacks=["batches-3-3", "batches-8-8"]).bounds() == {0: 11}
    with pytest.raises(StorageError, match="micro-batch 8 is missing, but batches-9-9 is there"):
        Meanwhile(tmp_path, lacks=["batches-3-3", "batches-8-8", "batches-8-8"]).bounds()


def test_what_is_not_whole_is_not_read(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    table = Landing(tmp_path)
    landed(spark, folder, table)
    rows = digest(table.table(spark))
    for kind in ("landing", "compacting"):
        (tmp_path / "batches-4-4").rename(tmp_path / f"_{kind}-0")
        assert digest(table.table(spark)) != rows
        (tmp_path / f"_{kind}-0").rename(tmp_path / "batches-4-4")
    (tmp_path / "_landing-0").mkdir()
    table.land(quotes(spark, folder).where("false"), 5)
    assert names(tmp_path)[-1] == "batches-5-5"


@pytest.mark.parametrize(
    "refused",
    [
        (7, 0, "7 does not follow 4"),
        (4, 0, "4 is in the table with other rows"),
        (5, 2, "5 has rows of recording 0 that are"),
    ],
)
def test_another_checkpoint_is_refused(
    spark: SparkSession, folder: Path, tmp_path: Path, refused: tuple[int, int, str]
) -> None:
    """A batch that does not follow; the last one with more rows than landed; the next one with rows that are there."""
    table = Landing(tmp_path)
    landed(spark, folder, table)
    batch_id, part, why = refused
    rows = batches(spark, folder, 5)[part]
    if batch_id == 4:
        rows = rows.selectExpr("recording_id", "position", "next_position + 1000000 as next_position")
    with pytest.raises(UsageError, match=f"{why}.*checkpoint is not the one"):
        table.land(rows, batch_id)
    assert Landing(tmp_path).bounds() == table.bounds()


def test_what_can_not_land(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    table = Landing(tmp_path)
    rows = quotes(spark, folder)
    with pytest.raises(UsageError, match="these lack next_position"):
        table.land(rows.drop("next_position"), 0)
    with pytest.raises(UsageError, match="dead_letter is the table's own"):
        table.land(rows.withColumn("dead_letter", rows.position), 0)
    landed(spark, folder, table)
    (tmp_path / "batches-2-2").rename(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="micro-batch 2 is missing"):
        table.bounds()


def test_a_newer_schema_adds_columns(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    """Rows of before have nulls in them; compaction keeps both, and the view has them, too."""
    newer = tmp_path / "newer.xml"
    lot = '<field name="lot" id="6" type="uint16" presence="optional" sinceVersion="2"/>'
    text = SCHEMA.read_text("utf-8").replace('version="1"', 'version="2"')
    newer.write_text(text.replace('sinceVersion="1"/>\n', f'sinceVersion="1"/>\n{lot}\n', 1), "utf-8")
    table = Landing(tmp_path / "table")
    first, second, _ = batches(spark, folder, 3)
    table.land(first, 0)
    columns = OPTIONS["columns"].replace("venue", "venue,lot")
    added = quotes(spark, folder, sbeSchema=str(newer), columns=columns)
    bounds = table.bounds()
    table.land(added.where(f"position >= {bounds[0]} and position < {2 * bounds[0]}"), 1)
    table.land(second.where("false"), 2)
    count = table.table(spark).count()
    assert "lot" in table.table(spark).columns
    table.compact(spark)
    assert table.table(spark).select("lot", "venue").count() == count
    view = table.view(spark, {**OPTIONS, "path": str(folder), "sbeSchema": str(newer), "columns": columns})
    assert view.where("lot is null").count() == view.count() == 2 * COUNT * 99 // 100


def test_the_view_has_each_row_once_wherever_the_table_ends(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    table = Landing(tmp_path)
    options = {**OPTIONS, "path": str(folder)}
    good = digest(quotes(spark, folder).where("sbe_error is null").drop("sbe_error", "sbe_error_at", "sbe_raw"))
    assert digest(table.view(spark, options)) == good
    for batch_id, rows in enumerate(batches(spark, folder, 3)):
        view = table.view(spark, options)
        table.land(rows, batch_id)
        assert digest(view) == good
        assert digest(table.view(spark, options)) == good


def test_a_table_of_another_kind_has_a_view_by_its_bounds(spark: SparkSession, folder: Path) -> None:
    options = {"path": str(folder), "streamId": "1001"}
    rows = scan(folder, columns=["recording_id", "position", "next_position"], filter="position < 5000").to_table()
    live = live_from(spark, options, bounds_of(rows))
    assert live is not None
    assert rows.num_rows + live.count() == 2 * COUNT
    assert live_from(spark, {**options, "streamId": "7"}, {}) is None
    assert bounds_of(pa.table({"recording_id": [1, 1, 2], "position": [0, 64, 0], "next_position": [64, 96, 32]})) == {
        1: 96,
        2: 32,
    }


def test_rows_after_bounds_are_those_that_a_table_lacks() -> None:
    rows = pa.table({"recording_id": [7, 1, 7, 1, 9], "position": [0, 32, 64, 96, 0], "row": ["a", "b", "c", "d", "e"]})
    for bounds, left in (
        ({}, "abcde"),
        ({7: 64, 1: 128}, "ce"),
        ({7: 65, 9: None}, "bde"),
        ({1: 96, 7: 96, 9: 32}, "d"),
    ):
        assert "".join(rows_after(rows, bounds)["row"].to_pylist()) == left
    assert rows_after(rows.slice(0, 0), {7: 64}).num_rows == 0


@pytest.mark.parametrize("into", ["delta", "iceberg"])
def test_a_new_checkpoint_goes_on_where_the_table_of_the_page_ends(
    spark: SparkSession, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, into: str
) -> None:
    """Its batches begin anew and have other bounds: the table has each row once, and all of them."""
    monkeypatch.chdir(tmp_path)
    table = KINDS[into](tmp_path)
    land = table.lander(spark)
    for batch_id, rows in enumerate(batches(spark, folder, 5)[:3]):
        land(rows, batch_id)
    for batch_id, rows in enumerate(batches(spark, folder, 2)):
        land(rows, batch_id)
    every = quotes(spark, folder)
    rows, dead = table.read(spark)
    assert digest(rows) == digest(every.where("sbe_error IS NULL").drop(*OF_ERRORS))
    assert digest(dead) == digest(every.where("sbe_error IS NOT NULL"))


def test_recordings_that_were_deleted_whole_are_in_the_table_alone(spark: SparkSession, tmp_path: Path) -> None:
    table = Landing(tmp_path)
    with Servers() as servers:
        written = RecordedFolder(servers)
        ids = [written.write([quote(index) for index in range(1, 50)]).recording_id for _ in range(2)]
        table.land(quotes(spark, servers.archive_dir), 0)
        options = {**OPTIONS, "path": str(servers.archive_dir)}
        for recording_id in ids:
            servers.archive.purge_recording(recording_id)
            assert table.view(spark, options).count() == 98


@pytest.mark.more
@pytest.mark.parametrize("into", KINDS)
def test_a_query_that_is_killed_lands_each_message_once(rng: random.Random, into: str) -> None:
    """The first moments: a batch is being written, and has landed; in the table of Parquet folders are put together, too."""
    assert lake_kills(3 if into == "parquet" else 2, rng.randrange(1 << 31), into) == 0


def test_the_view_has_each_row_once_while_segments_are_deleted(spark: SparkSession, tmp_path: Path) -> None:
    assert lake_view(spark, tmp_path, 5) == []
