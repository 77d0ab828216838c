"""Offsets that older releases journaled: the batches between them have the same rows, and the query continues behind each."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from aeron_spark.archive.segments import Folder
from aeron_spark.spark import ledger
from aeron_spark.spark.planning.offsets import OFFSET_VERSION
from tests.kit import packed
from tests.spark.golden import GOLDEN, QUERIES, Row, batches, reader_of, rows_between

MADE = sorted(GOLDEN.glob("checkpoints-*.tar.gz"))


def unpack(path: Path, to: Path) -> Path:
    packed.unpack(path, to)
    return to


def journaled(golden: Path, name: str) -> list[tuple[str, list[Row]]]:
    """As `golden.batches` gave it to the release that wrote it."""
    found: list[Any] = json.loads((golden / f"{name}.json").read_text("utf-8"))
    return [(text, [tuple(row) for row in rows]) for text, rows in found]


def test_there_are_some_of_every_version(tmp_path: Path) -> None:
    """Who changes a format makes others: `python -m tests.spark.golden VERSION`."""
    offsets: set[int] = set()
    entries: set[int] = set()
    for number, path in enumerate(MADE):
        golden = unpack(path, tmp_path / f"{number}")
        offsets |= {json.loads(text)["version"] for name in QUERIES for text, _ in journaled(golden, name)}
        with Folder(golden / "archive") as folder:
            (of_ledger,) = filter(ledger.is_ledger, folder.recordings())
            for batch in folder.read(of_ledger.recording_id, columns=["value"]):
                entries |= {int.from_bytes(value.as_py()[4:6], "little") for value in batch.column("value")}
    assert offsets == set(range(1, OFFSET_VERSION + 1))
    assert entries == set(range(1, ledger.ENTRY_VERSION + 1))


@pytest.mark.parametrize("path", MADE, ids=lambda path: path.name.partition(".")[0])
@pytest.mark.parametrize("name", QUERIES)
def test_queries_go_on_from_what_they_journaled(path: Path, name: str, tmp_path: Path) -> None:
    golden = unpack(path, tmp_path)
    old = journaled(golden, name)
    assert len(old) > 3
    rest = [row for _, rows in old for row in rows]
    for (start, _), (end, rows) in itertools.pairwise(old):
        reader = reader_of(name, golden / "archive")  # as after a restart: it has been asked for nothing
        assert rows_between(reader, json.loads(start), json.loads(end)) == rows
        latest = reader.latestOffset(json.loads(start), ReadAllAvailable())
        assert sorted(rows_between(reader, json.loads(start), latest)) == sorted(rest)
        rest = [row for row in rest if row not in rows]
        reader.stop()
    last = json.loads(old[-1][0])
    reader = reader_of(name, golden / "archive")
    assert reader.latestOffset(last, ReadAllAvailable()) == last, "no batch without rows"
    reader.stop()
    if last["version"] == OFFSET_VERSION:
        assert batches(name, golden / "archive") == old, "and the text that Spark compares is the same"
