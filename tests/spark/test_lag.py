"""Lag out of a query's progress: bytes from offsets alone, messages and seconds with the folder."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadMaxBytes

from aeron_spark.errors import UsageError
from aeron_spark.spark.listener import Lag, LagListener, lag, total
from aeron_spark.spark.planning.lag import _seconds, source_metrics
from tests.kit import dirs
from tests.spark import recorded
from tests.spark.readers import Follower, read


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two recordings of 1,000 and 100 messages."""
    archive_dir = tmp_path_factory.mktemp("lag") / "archive"
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, archive_dir) as archive:
        archive.recorded(1001, 1000, [100, 200])
        archive.recorded(1002, 100, [100])
    return archive_dir


def progress_of(end: object, latest: object) -> dict[str, Any]:
    return {"sources": [{"endOffset": end, "latestOffset": latest}]}


def test_lag(folder: Path) -> None:
    with Follower(folder) as follower:
        end = follower.reader.latestOffset(follower.offset, ReadMaxBytes(50_000))
        taken: dict[int, int] = {0: 0, 1: 0}
        for row in read(follower.reader, follower.reader.partitions(follower.offset, end)):
            taken[row["recording_id"]] += 1
        latest = follower.reader.reportLatestOffset()
        assert latest is not None
        ends, limits = end["positions"], latest["positions"]
        assert isinstance(ends, dict)
        assert isinstance(limits, dict)
        expected = {key: limits[str(key)] - ends[str(key)] for key in (0, 1)}
        assert {key: one.bytes for key, one in lag(progress_of(end, latest)).items()} == expected
        # Classic sessions hand on objects, Connect texts.
        as_text = json.dumps(progress_of(json.dumps(end), json.dumps(latest)))
        found = lag(as_text, f"file:{folder}")
        assert {key: one.bytes for key, one in found.items()} == expected
        assert {key: one.messages for key, one in found.items()} == {0: 1000 - taken[0], 1: 100 - taken[1]}
        assert all(one.seconds is not None and 0 <= one.seconds < 60 for one in found.values())
        assert total(found).messages == 1100 - sum(taken.values())
        joined = {**end, **{name: {"0": end[name]["0"]} for name in ("positions", "starts", "archive")}}  # type: ignore[index]
        assert lag(progress_of(joined, latest))[1] == Lag(bytes=limits["1"]), "one that the query does not know yet"
        assert lag(progress_of(latest, latest), folder) == {
            key: Lag(bytes=0, messages=0, seconds=0.0) for key in (0, 1)
        }
        assert lag(progress_of(None, None)) == {}
        assert lag(progress_of('{"topic": {"0": 1}}', '{"topic": {"0": 2}}')) == {}


def test_before_the_first_batch_nothing_is_known() -> None:
    assert lag(None) == {}
    assert total(lag(None)) == Lag(bytes=None), "unknown is not zero"


END = {"archive": {"0": 7, "1": 8}, "positions": {"0": 64, "1": 32}, "starts": {"0": 0, "1": 0}, "version": 1}


@pytest.mark.parametrize("latest", [None, "null", "{}"])
def test_a_batch_that_is_run_again_tells_no_lag(
    folder: Path, latest: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """After a restart Spark requests no latest offset: the end of the recordings is unknown, which is not 0.

    END is of another archive than the folder: its recordings have other identities.
    """
    for given in (None, folder):
        found = lag(progress_of(json.dumps(END), latest), given)
        assert found == {0: Lag(bytes=None), 1: Lag(bytes=None)}
        assert total(found) == Lag(bytes=None)
    told: list[dict[int, Lag]] = []
    source = SimpleNamespace(endOffset=END, latestOffset=latest)
    progress = SimpleNamespace(name="copy", id="1", batchId=7, numInputRows=5, sources=[source])
    with caplog.at_level(logging.INFO, "aeron_spark.spark"):
        listener = LagListener(folder, lambda _, found: told.append(found))
        listener.onQueryProgress(SimpleNamespace(progress=progress))  # type: ignore[arg-type]
    assert "took 5 rows, an unknown number of bytes behind in 2 recordings" in caplog.text
    assert told == [{0: Lag(bytes=None), 1: Lag(bytes=None)}]


@pytest.mark.parametrize("name", ["bytes", "messages", "seconds"])
def test_a_total_knows_no_more_than_its_parts(name: str) -> None:
    known = Lag(bytes=5, messages=2, seconds=1.5)
    both = total({0: known, 1: Lag(bytes=7, messages=1, seconds=0.5)})
    assert both == Lag(bytes=12, messages=3, seconds=1.5)
    assert total({0: known, 1: replace(known, **{name: None})}) == replace(total({0: known, 1: known}), **{name: None})


def test_metrics_of_a_source() -> None:
    """Of several recordings, and of committed rows; what is not known is left out, and ends no query."""
    latest = {**END, "positions": {"0": 96, "1": 160}}
    assert source_metrics(END, latest) == {
        "recordings": "2",
        "bytesBehindLatest": "160",
        "maxBytesBehindLatest": "128",
    }
    part = {"bytes": 64, "messages": 2, "begin": 0, "end": 64}
    committed = {**latest, "behind": {"after": END["positions"], "ranges": {"7": part}}}
    assert source_metrics(END, committed)["bytesBehindLatest"] == "64"
    committed["behind"] = {"after": latest["positions"], "ranges": {"7": part}}
    assert source_metrics(END, committed) == {}, "of another end"
    assert source_metrics({**END, "positions": {}}, {**latest, "positions": {}}) == {"recordings": "0"}


@pytest.mark.parametrize("given", [{}, "", "{}", "null", 7, {"lag": 1}])
def test_what_is_no_progress(given: object) -> None:
    with pytest.raises(UsageError, match=r"is no progress: give query\.lastProgress"):
        lag(given)


def test_listener_tells_an_operator(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Follower(folder) as follower:
        latest = follower.reader.reportLatestOffset()
        told: list[dict[int, Lag]] = []
        listener = LagListener(folder, lambda _, found: told.append(found))
        source = SimpleNamespace(endOffset=follower.offset, latestOffset=latest)
        progress = SimpleNamespace(name="copy", id="1", batchId=7, numInputRows=5, sources=[source])
        with caplog.at_level(logging.INFO, "aeron_spark.spark"):
            listener.onQueryProgress(SimpleNamespace(progress=progress))  # type: ignore[arg-type]
        assert "query copy: batch 7 took 5 rows, " in caplog.text
        assert "1,100 messages" in caplog.text
        logged = vars(caplog.records[-1])["aeron"]
        assert (logged["query_id"], logged["batch_id"], logged["rows"], logged["lags"][1]["messages"]) == (
            "1",
            7,
            5,
            100,
        )
        assert told[0][1].messages == 100


@pytest.mark.parametrize("latest", [None, "null", "{}"])
def test_with_the_folder_a_batch_that_is_run_again_tells_its_lag(folder: Path, latest: str | None) -> None:
    """The folder knows how far the recordings go."""
    with Follower(folder) as follower:
        end = follower.reader.latestOffset(follower.offset, ReadMaxBytes(50_000))
        full = follower.reader.reportLatestOffset()
        assert lag(progress_of(end, latest), folder) == lag(progress_of(end, full), folder)
        assert total(lag(progress_of(end, latest), folder)).bytes != 0
        assert lag(progress_of(full, latest), folder) == {key: Lag(bytes=0, messages=0, seconds=0.0) for key in (0, 1)}


@pytest.mark.parametrize(("times", "seconds"), [([None, 5], None), ([5, None], None), ([5, 1_000_000_005], 1.0)])
def test_seconds_need_both_times(times: list[int | None], seconds: float | None) -> None:
    """The newest message may not be in the time index yet, the oldest no longer."""
    folder: Any = SimpleNamespace(index_times_at=lambda *_: pa.array(times, pa.timestamp("ns", "UTC")))
    assert _seconds(folder, 0, 0, 64) == seconds
