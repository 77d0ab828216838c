"""Batch reads: captured archives of stock Aeron row by row, and what may be chosen, over recordings of ours."""

from __future__ import annotations

import csv
import itertools
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from chispa import assert_df_equality
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.kit import packed
from tests.kit.payload import RESERVED_FACTOR, payload
from tests.spark import recorded

pytestmark = pytest.mark.usefixtures("engine")

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "archive"
CAPTURED = sorted(path.name.removesuffix(".tar.gz") for path in GOLDEN.glob("*.tar.gz"))


def unpack(name: str, to: Path) -> tuple[Path, dict[int, list[dict[str, str]]]]:
    """The archive's folder, and per recording what the stock archive replayed."""
    packed.unpack(GOLDEN / f"{name}.tar.gz", to)
    folders = [catalog.parent for catalog in to.rglob("archive.catalog")]
    assert len(folders) == 1
    expected = {}
    for listing in to.rglob("rec-*.csv"):
        if listing.name.endswith(".frames.csv"):
            continue
        with listing.open() as lines:
            expected[int(listing.stem.removeprefix("rec-"))] = list(csv.DictReader(lines))
    assert expected
    return folders[0], expected


def contents(folder: Path) -> dict[Path, bytes]:
    """Every file's bytes."""
    return {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def rows_begin(rows: list[tuple[int, ...]], index: int) -> int:
    """What we read, for the captures that do not say where a message begins."""
    return rows[index][0] if index < len(rows) else -1


@pytest.mark.parametrize("name", CAPTURED)
def test_captured_archive(spark: SparkSession, tmp_path: Path, name: str) -> None:
    folder, expected = unpack(name, tmp_path)
    before = contents(folder)
    rows = spark.read.format("aeron").load(str(folder)).orderBy("recording_id", "position").collect()
    seen: dict[int, list[tuple[int, ...]]] = {recording_id: [] for recording_id in expected}
    for row in rows:
        seen[row.recording_id].append(
            (row.position, row.next_position, len(row.value), zlib.crc32(row.value), row.reserved_value)
        )
    for recording_id, messages in expected.items():
        assert seen[recording_id] == [
            (
                int(message.get("begin_position", rows_begin(seen[recording_id], index))),
                int(message["end_position"]),
                int(message["length"]),
                int(message["crc32"], 16),
                int(message["reserved_value"]),
            )
            for index, message in enumerate(messages)
        ], f"recording {recording_id} of {name}"
    if name == "archive":
        assert len({row.session_id for row in rows if row.recording_id == 2}) == 2, (
            "it was extended by another publication"
        )
    assert contents(folder) == before, "reading must not write"


def test_captured_archives_are_there() -> None:
    assert len(CAPTURED) >= 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Recording 0: 4,000 messages of mixed sizes, fragmented ones among them; recording 1: 500 small ones."""
    from tests.kit import dirs

    archive_dir = tmp_path_factory.mktemp("batch") / "archive"
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, archive_dir) as archive:
        archive.recorded(1001, 4000, SIZES)
        archive.recorded(1002, 500, [16])
    return archive_dir


SIZES = [8, 100, 1376, 1377, 5000]


def load(spark: SparkSession, folder: Path, **options: object) -> DataFrame:
    reader = spark.read.format("aeron")
    for name, value in options.items():
        reader = reader.option(name, value)
    return reader.load(str(folder))


def test_rows_of_our_archive(spark: SparkSession, folder: Path) -> None:
    rows = load(spark, folder, recordingIds="0").orderBy("position").collect()
    assert len(rows) == 4000
    for index, row in enumerate(rows):
        assert row.value == payload(1001, index, SIZES[index % len(SIZES)])
        assert row.reserved_value == index * RESERVED_FACTOR
        assert row.stream_id == 1001
    for row, following in itertools.pairwise(rows):
        assert row.next_position <= following.position


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ({}, {0, 1}),
        ({"recordingIds": "1"}, {1}),
        ({"recordingIds": "0, 1"}, {0, 1}),
        ({"streamId": "1002"}, {1}),
        ({"channel": recorded.CHANNEL, "streamId": "1001"}, {0}),
    ],
)
def test_what_to_read(spark: SparkSession, folder: Path, options: dict[str, str], ids: set[int]) -> None:
    found = load(spark, folder, **options).select("recording_id").distinct().collect()
    assert {row.recording_id for row in found} == ids


def test_splits_lose_and_repeat_nothing(spark: SparkSession, folder: Path) -> None:
    whole = load(spark, folder, recordingIds="0", minPartitions=1)
    split = load(spark, folder, recordingIds="0", maxBytesPerPartition="1m")
    assert split.select(F.spark_partition_id()).distinct().count() >= 5
    assert_df_equality(whole, split, ignore_row_order=True)


def test_range_owns_the_messages_that_begin_in_it(spark: SparkSession, folder: Path) -> None:
    rows = load(spark, folder, recordingIds="0").orderBy("position").select("position", "next_position").collect()
    cut = rows[1999].position + 32 * 40  # inside message 1999, which has 5,000 bytes
    assert rows[1999].position < cut < rows[1999].next_position
    head = load(spark, folder, recordingIds="0", endingPositions=f'{{"0": {cut}}}')
    tail = load(spark, folder, recordingIds="0", startingPositions=f'{{"0": {cut}}}')
    assert head.agg(F.max("position")).first()[0] == rows[1999].position
    assert tail.agg(F.min("position")).first()[0] == rows[2000].position
    assert head.count() + tail.count() == 4000


def test_user_schema_chooses_columns(spark: SparkSession, folder: Path) -> None:
    frame = (
        spark.read.format("aeron")
        .schema("value binary, position bigint, term_offset int, flags smallint")
        .load(str(folder))
    )
    assert frame.columns == ["value", "position", "term_offset", "flags"]
    row = frame.where("position = 0").where("length(value) = 8").first()
    assert (row.position, row.term_offset, row.flags) == (0, 0, 0xC0)


def test_nothing_is_nullable(spark: SparkSession, folder: Path) -> None:
    assert not any(field.nullable for field in load(spark, folder).schema.fields)


def test_temporary_view(spark: SparkSession, folder: Path) -> None:
    spark.sql(f"CREATE TEMPORARY VIEW recorded USING aeron OPTIONS (path '{folder}')")
    try:
        assert spark.sql("SELECT count(*) FROM recorded WHERE recording_id = 1").first()[0] == 500
    finally:
        spark.sql("DROP VIEW recorded")  # other tests share the session


@pytest.mark.parametrize(
    ("schema", "options", "names"),
    [
        (None, {"recordingIds": "7"}, "7"),
        (None, {"streamId": "7"}, "aeron:ipc"),
        (None, {"startingPositions": '{"0": 99999999}'}, "out of range"),
        (None, {"recordingIds": "0", "startingPositions": '{"0": 640}', "endingPositions": '{"0": 64}'}, "lies after"),
        (None, {"recordingIds": "1", "startingPositions": '{"0": 0}'}, "not among"),
        (None, {"recordingid": "1"}, "did you mean recordingIds"),
        ("value string", {}, "value is binary"),
        ("key binary", {}, "does not exist"),
    ],
)
def test_bad_input_names_the_remedy(
    spark: SparkSession, folder: Path, schema: str | None, options: dict[str, str], names: str
) -> None:
    reader = spark.read.format("aeron").options(**options)
    if schema is not None:
        reader = reader.schema(schema)
    with pytest.raises(PySparkException, match=names):
        reader.load(str(folder)).collect()


def test_wrong_options_are_told_in_load(spark: SparkSession, folder: Path) -> None:
    """Before an action; and a stream reader's error at its making would be hidden by Spark."""
    for reader in (spark.read, spark.readStream):
        with pytest.raises(PySparkException, match="did you mean recordingIds"):
            reader.format("aeron").option("recordingid", "1").load(str(folder))
    with pytest.raises(PySparkException, match="several paths"):
        spark.read.format("aeron").load([str(folder), str(folder)])


def test_hadoop_style_path(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    spaced = tmp_path / "with space ü"
    spaced.symlink_to(folder)
    assert load(spark, Path(f"file:{spaced}"), recordingIds="1").count() == 500


@pytest.mark.parametrize(
    ("damage", "names"),
    [
        (lambda path: (path / "archive.catalog").write_bytes(b"\x01" * 4096), "catalog"),
        (lambda path: (path / "archive.catalog").unlink(), "catalog"),
        (lambda path: next(path.glob("0-131072.rec")).unlink(), "0-131072.rec"),
        (lambda path: _overwrite(next(path.glob("0-131072.rec")), 0, b"\x05\x00\x00\x00"), "131072"),
        (lambda path: _overwrite(next(path.glob("0-0.rec")), 64, bytes(4)), "64"),
    ],
)
def test_damaged_folder(spark: SparkSession, folder: Path, tmp_path: Path, damage: object, names: str) -> None:
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    assert callable(damage)
    damage(copy)
    with pytest.raises(PySparkException, match=names):
        spark.read.format("aeron").option("recordingIds", "0").load(str(copy)).collect()


def _overwrite(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


def test_folder_that_is_none(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match=str(tmp_path)):
        spark.read.format("aeron").load(str(tmp_path / "absent")).collect()
