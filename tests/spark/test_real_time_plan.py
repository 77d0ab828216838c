"""What Real-Time Mode asks the planner for, without Spark: what tasks follow, and the offset that they have reached."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from aeron_spark.errors import DataLossError, UsageError
from aeron_spark.spark.planning.uncommitted import UncommittedPlanner
from aeron_spark.spark.reading.batch import RangesPartition
from aeron_spark.spark.reading.stream import RefusedStream
from tests.kit import dirs
from tests.spark import recorded
from tests.spark.readers import Follower

STOPPED, ACTIVE, OTHER, NEW = 1, 2, 3, 4
TASKS = 4


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[recorded.Archive]:
    """Recording 0 is stopped, 1 and 2 go on; each holds 20 messages."""
    archive_dir = tmp_path_factory.mktemp("real-time") / "archive"
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, archive_dir) as archive:
        archive.recorded(STOPPED, 20, [100])
        with archive.record(ACTIVE) as one, archive.record(OTHER) as other:
            for stream_id, publication in ((ACTIVE, one), (OTHER, other)):
                recorded.publish(publication, stream_id, 20, [100])
                archive.wait_recorded(stream_id, publication.position)
            yield archive


Open = Callable[..., Follower]


@pytest.fixture
def follow(servers: recorded.Archive) -> Iterator[Open]:
    """Opens queries, which end with the test."""
    with ExitStack() as opened:
        yield lambda **options: opened.enter_context(Follower(servers.archive_dir, **options))


def asked(query: Follower, **request: object) -> list[RangesPartition]:
    partitions = query.reader.plan(query.offset, {"realTime": request})
    assert all(isinstance(partition, RangesPartition) for partition in partitions)
    return partitions  # type: ignore[return-value]


def begins(partitions: list[RangesPartition]) -> dict[int, int]:
    return {part.recording_id: part.start for partition in partitions for part in partition.ranges}


def known(partitions: list[RangesPartition]) -> dict[str, Any]:
    jobs = {partition.job for partition in partitions}
    assert len(jobs) == 1
    return json.loads(jobs.pop())["known"]  # type: ignore[no-any-return]


def test_tasks_follow_what_there_is_to_read_and_what_goes_on(follow: Open) -> None:
    query = follow()
    first = asked(query, tasks=TASKS)
    assert len(first) == 3, "no task without a recording"
    assert begins(first) == {0: 0, 1: 0, 2: 0}
    assert known(first) == {"newest": 2, "active": [1, 2]}
    one = asked(query, tasks=1)
    assert len(one) == 1
    assert begins(one) == begins(first)
    assert len(asked(follow(minPartitions="2"), tasks=1)) == 2


def test_a_stopped_recording_of_which_all_is_read_is_not_followed(follow: Open) -> None:
    query = follow()
    query.step()
    assert begins(asked(query, tasks=TASKS)) == {key: query.offset["positions"][str(key)] for key in (1, 2)}


def test_recordings_that_the_query_does_not_choose_are_known(follow: Open) -> None:
    partitions = asked(follow(streamId=str(ACTIVE)), tasks=TASKS)
    assert begins(partitions) == {1: 0}
    assert known(partitions) == {"newest": 2, "active": [1, 2]}


def test_an_empty_choice_has_a_task_that_waits(follow: Open) -> None:
    partitions = asked(follow(streamId="99"), tasks=TASKS)
    assert len(partitions) == 1
    assert begins(partitions) == {}


def test_a_recording_that_begins_while_it_is_planned_is_not_known(follow: Open, servers: recorded.Archive) -> None:
    """The first task that looks ends the batch for it."""
    query = follow()
    query.step()
    planner = query.reader.planner
    assert isinstance(planner, UncommittedPlanner)
    planner.pace.due_at = math.inf  # the end of the batch is of before
    publication = servers.record(NEW)
    newest = servers.recording_id(NEW)
    partitions = asked(query, tasks=TASKS)
    assert newest not in begins(partitions)
    assert known(partitions) == {"newest": newest - 1, "active": [1, 2]}
    servers.stop(publication, NEW)
    servers.control.purge_recording(newest)


@pytest.mark.parametrize("has_start_time", [False, True])
@pytest.mark.parametrize("has_stopped", [False, True])
def test_what_is_recorded_while_it_is_planned_is_followed(
    follow: Open, servers: recorded.Archive, has_stopped: bool, has_start_time: bool
) -> None:
    """Also of a recording that has stopped by then: else its messages would wait for the batch's end, or be left out."""
    query = follow(**({"startingTimestamp": str(time.time_ns() // 10**6)} if has_start_time else {}))
    publication = servers.record(NEW)
    newest = servers.recording_id(NEW)
    query.step()
    planner = query.reader.planner
    assert isinstance(planner, UncommittedPlanner)
    planner.pace.due_at = math.inf  # the end of the batch is of before
    recorded.publish(publication, NEW, 20, [100])
    servers.wait_recorded(NEW, publication.position)
    if has_stopped:
        servers.stop(publication, NEW)
    assert begins(asked(query, tasks=TASKS))[newest] == 0
    if not has_stopped:
        servers.stop(publication, NEW)
    servers.control.purge_recording(newest)


def test_the_offset_that_is_reached_is_that_of_a_micro_batch(follow: Open) -> None:
    python, query = follow(), follow()
    python.step()
    asked(query, tasks=TASKS)
    (answer,) = asked(query, reached=python.offset["positions"])
    assert json.loads(answer.job)["offset"] == json.dumps(python.offset)
    assert "marks" in python.offset
    (answer,) = asked(query, reached=dict(query.offset["positions"]))
    assert json.loads(json.loads(answer.job)["offset"]) == query.offset, "nothing was read"


def test_an_offset_does_not_go_back(follow: Open) -> None:
    query = follow()
    query.step()
    asked(query, tasks=TASKS)
    with pytest.raises(DataLossError, match="before its begin"):
        asked(query, reached={"1": 0})


def test_replaced_bytes_are_found_before_something_follows_them(follow: Open) -> None:
    query = follow()
    query.step()
    marks = {key: mark ^ 1 << 40 for key, mark in query.offset["marks"].items()}
    query.offset = {**query.offset, "marks": marks}
    with pytest.raises(DataLossError, match="other bytes stand before position"):
        asked(query, tasks=TASKS)


def test_a_start_time_leaves_out_what_is_older(follow: Open) -> None:
    def from_time(nanoseconds: int) -> dict[int, int]:
        return begins(asked(follow(startingTimestamp=str(nanoseconds // 10**6)), tasks=TASKS))

    assert from_time(0) == {0: 0, 1: 0, 2: 0}
    query = follow()
    query.step()
    newest = query.offset["positions"]
    assert from_time(time.time_ns()) == {1: newest["1"], 2: newest["2"]}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"payload": "string"}, "payload=string"),
        ({"engine": "python"}, "engine=python"),
        ({"failOnDataLoss": "false"}, "failOnDataLoss=false"),
        ({"maxBytesPerTrigger": "1m"}, "maxBytesPerTrigger: its batches have no limits"),
        ({"isolation": "read_committed"}, "isolation=read_committed"),
        ({"startingTimestamp": "4102444800000"}, "startingTimestamp: one that is to come"),
    ],
    ids=str,
)
def test_what_the_mode_cannot_do_is_refused(follow: Open, options: dict[str, str], text: str) -> None:
    query = follow(**options)
    with pytest.raises(UsageError, match=r"Spark's Real-Time Mode cannot read with") as refused:
        asked(query, tasks=TASKS)
    assert text in str(refused.value)
    assert "or the trigger realTime, and Spark reads in micro-batches" in str(refused.value)


def test_wrong_options_are_told_as_in_micro_batches() -> None:
    with pytest.raises(UsageError, match="why not"):
        RefusedStream(UsageError("why not")).plan({}, {"realTime": {"tasks": 1}})


def test_tasks_get_nothing_of_it(follow: Open) -> None:
    query = follow()
    asked(query, tasks=TASKS)
    assert set(query.reader.__getstate__()) == {"_options", "_rows"}
