"""`access` through Spark: each mode gives the rows of the folder, in batch and stream; impossible options are errors."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from chispa.dataframe_comparer import assert_df_equality
from pyspark.sql import DataFrame, SparkSession

from aeron_spark.errors import UsageError
from aeron_spark.spark import access
from aeron_spark.spark.planning.options import ReadOptions
from tests.kit import dirs, s3
from tests.kit.ports import free_port
from tests.spark import recorded

SIZES = (5, 700, 1408, 4000)
COUNT = 2000
STREAM = 1001


class Ways(NamedTuple):
    """One archive, and the options for each access mode."""

    folder: Path
    control_channel: str
    options: dict[str, dict[str, str]]
    control: recorded.Archive


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ways]:
    """Two recordings, one of them live; the same segments in a bucket, with keys in a file."""
    work = tmp_path_factory.mktemp("access")
    control = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    settings = {"aeron.archive.control.channel": control, "aeron.archive.control.channel.enabled": "true"}
    with (
        dirs.fresh("aeron") as aeron_dir,
        recorded.archive(aeron_dir, work / "archive", settings) as archive,
    ):
        archive.recorded(STREAM, COUNT, SIZES)
        with s3.store(work / "archive") as store:
            yield Ways(
                work / "archive",
                control,
                {
                    "segments": {"path": str(work / "archive"), "access": "segments"},
                    "replay": {"access": "replay", "controlChannel": control, "aeronDir": str(aeron_dir)},
                    "folder as a store": {"path": str(work / "archive"), "access": "object store"},
                    "s3": store.options(work / "keys.json"),
                },
                archive,
            )


def read(spark: SparkSession, options: dict[str, str]) -> DataFrame:
    return spark.read.format("aeron").options(**options).load()


@pytest.mark.parametrize("way", ["replay", "folder as a store", "s3"])
def test_every_way_gives_the_rows_of_the_segments(spark: SparkSession, ways: Ways, way: str) -> None:
    options = {"minPartitions": "3", "maxBytesPerPartition": "1m"}
    expected = read(spark, ways.options["segments"] | options)
    assert expected.count() == COUNT
    assert_df_equality(read(spark, ways.options[way] | options), expected, ignore_row_order=True)
    middle = {"startingPositions": '{"0": 500001}', "endingPositions": '{"0": 1000001}'}
    some = read(spark, ways.options["segments"] | middle)
    assert 0 < some.count() < COUNT
    assert_df_equality(read(spark, ways.options[way] | middle), some, ignore_row_order=True)


@pytest.mark.parametrize("way", ["replay", "s3"])
def test_a_stream_by_any_way_takes_everything_once(spark: SparkSession, ways: Ways, way: str, tmp_path: Path) -> None:
    """Several micro-batches by bytes, started again from the checkpoint by the segments: positions mean the same."""
    for chosen, limit in ((way, "400k"), ("segments", "10m")):
        stream = spark.readStream.format("aeron").options(
            **ways.options[chosen], startingPositions="earliest", maxBytesPerTrigger=limit
        )
        query = (
            stream.load()
            .writeStream.format("parquet")
            .option("path", str(tmp_path / "out"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        batches = [progress for progress in query.recentProgress if progress["numInputRows"]]
        assert (len(batches) > 2) == (chosen != "segments")
    assert_df_equality(
        spark.read.parquet(str(tmp_path / "out")),
        read(spark, ways.options["segments"]),
        ignore_row_order=True,
        ignore_nullable=True,
    )


def test_secrets_are_in_no_text(spark: SparkSession, ways: Ways, tmp_path: Path) -> None:
    options = ReadOptions.parse(ways.options["s3"], streaming=False)
    secret = s3.KEYS["secret_key"]
    assert secret not in repr(options)
    frame = read(spark, ways.options["s3"])
    assert secret not in frame._jdf.queryExecution().toString()
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps({**s3.KEYS, "unknown": 1}), "utf-8")
    with pytest.raises(UsageError, match="unknown") as refused:
        access.open_recordings(
            ReadOptions.parse({**ways.options["s3"], "storeCredentialsFile": str(keys)}, streaming=False).access,
            access.RecordChecksum.AUTO,
        )
    assert secret not in str(refused.value)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "option path is missing"),
        ({"access": "segment", "path": "/a"}, "choose one of auto, segments, replay, object store"),
        ({"access": "replay", "path": "/a"}, "controlChannel is missing"),
        ({"access": "segments", "controlChannel": "aeron:ipc"}, "option path is missing"),
        ({"access": "segments", "path": "s3://a/b"}, "cannot read s3:"),
        ({"path": "s3://key:secret@bucket/a"}, "credentials do not belong into a s3: path"),
        ({"path": "ftp://host/a"}, "ftp: cannot be read"),
        ({"path": "/a", "replayChannel": "aeron:ipc"}, "give controlChannel as well"),
        ({"path": "s3://a/b", "storeOptions": '{"secret_key": "x"}'}, "secret_key is a secret"),
        ({"path": "s3://a/b", "storeOptions": "[]"}, "must be a JSON object"),
        ({"path": "/a", "controlChannel": "udp"}, "must begin with 'aeron:'"),
    ],
)
def test_what_cannot_be_is_refused_at_once(options: dict[str, str], told: str) -> None:
    with pytest.raises(UsageError, match=told) as refused:
        ReadOptions.parse(options, streaming=False)
    assert "key:secret" not in str(refused.value)


def test_auto_says_what_it_picks_and_why(ways: Ways, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def told(**options: str) -> str:
        access._logged.clear()
        parsed = ReadOptions.parse(options, streaming=False).access
        access.open_recordings(parsed, access.RecordChecksum.AUTO).close()
        return capfd.readouterr().err

    replay: dict[str, Any] = {name: value for name, value in ways.options["replay"].items() if name != "access"}
    stored = {name: value for name, value in ways.options["s3"].items() if name != "access"}
    assert f"access=segments: {ways.folder} is here" in told(path=str(ways.folder))
    assert f"access=segments: {ways.folder} is here" in told(path=str(ways.folder), **replay)
    hidden = str(tmp_path / "hidden")
    assert f"access=replay: {hidden} is not on host {os.uname().nodename}" in told(path=hidden, **replay)
    assert "access=replay: controlChannel is given and no path" in told(**replay)
    assert "access=object store: the path is of s3:" in told(**stored)


def test_segments_that_are_not_visible_say_so(tmp_path: Path) -> None:
    options = ReadOptions.parse({"path": str(tmp_path / "hidden"), "access": "segments"}, streaming=False).access
    with pytest.raises(UsageError, match=rf"not visible on host {os.uname().nodename}.*access=replay"):
        access.open_recordings(options, access.RecordChecksum.AUTO)


def test_an_archive_that_is_gone_fails_the_read_and_serves_it_when_back(spark: SparkSession, tmp_path: Path) -> None:
    control = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    settings = {"aeron.archive.control.channel": control, "aeron.archive.control.channel.enabled": "true"}
    with dirs.fresh("client") as client_dir, dirs.fresh("aeron") as aeron_dir:
        options = {"controlChannel": control, "aeronDir": str(client_dir)}
        shutil.rmtree(client_dir)
        with recorded.archive(aeron_dir, tmp_path / "archive", settings) as archive:
            archive.recorded(STREAM, 100, SIZES)
            assert read(spark, options).count() == 100
        with pytest.raises(Exception, match="archive"):
            read(spark, options).count()
        with recorded.archive(aeron_dir, tmp_path / "archive", settings):
            assert read(spark, options).count() == 100
