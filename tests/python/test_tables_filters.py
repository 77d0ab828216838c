"""Filters of scans: the rows that a filter selects and no others, whatever is left unread.

Method: every answer of a scan is compared with what Arrow selects from the whole table, and what is read with `ranges`.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from aeron_spark import UsageError
from aeron_spark.tables import filters, pruning, scan
from aeron_spark.tables.pruning import GRAIN_BYTES, Known, Pruner, Span
from tests.kit.market import COUNT, SCHEMA, START_NS, TEXTS, Market, of, read_bytes, until_failure
from tests.kit.programs import ended_well


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("cells", [3, pruning.GRID_CELLS])
def test_filters_select_what_arrow_selects(
    market: Market, rng: random.Random, monkeypatch: pytest.MonkeyPatch, cells: int
) -> None:
    """By seed: positions, recordings, streams and times, joined by and, or, not; cut by several grids, and by one."""
    monkeypatch.setattr(pruning, "GRID_CELLS", cells)
    monkeypatch.setattr(pruning, "GRAIN_BYTES", 16 << 10)
    position, time = pc.field("position"), pc.field("timestamp")
    last = market.whole["position"][COUNT - 1].as_py()
    times = market.whole["timestamp"]

    def one() -> pc.Expression:
        value = pa.scalar(rng.randint(-10, last + 100), pa.int64())
        when = times[rng.randrange(len(times))]
        return rng.choice(
            [
                position >= value, position < value, position == market.whole["position"][rng.randrange(COUNT)],
                position.isin([rng.randrange(0, last, 32) for _ in range(3)]), time >= when, time < when, time == when,
                pc.field("recording_id") == rng.choice([market.recording, market.texts, 77]),
                pc.field("stream_id").isin([TEXTS, 5]), time.is_null(), pc.field("next_position") > value,
                pc.field("value") == b"line 7",
            ]
        )  # fmt: skip

    for _ in range(25):
        expression = one()
        for _ in range(rng.randrange(3)):
            expression = rng.choice([expression & one(), expression | one(), ~expression, expression & ~one()])
        found = of(market, filter=expression)
        assert found.to_table().equals(market.whole.filter(expression)), expression
        assert found.count_rows() == market.whole.filter(expression).num_rows


def test_what_a_filter_rules_out_is_not_read(market: Market) -> None:
    whole = read_bytes(of(market))
    few = of(market, filter="position >= 1000000 and position < 1000200")
    assert 0 < read_bytes(few) <= 2 * GRAIN_BYTES
    assert [part.recording_id for part in of(market, filter="stream_id = 2002").ranges()] == [market.texts]
    assert of(market, filter="recording_id = 77").ranges() == []
    times = market.whole["timestamp"]
    early = of(market, filter=pc.field("timestamp") < times[COUNT // 100])
    assert early.count_rows() == market.whole.filter(pc.field("timestamp") < times[COUNT // 100]).num_rows
    late = of(market, market.recording, filter=pc.field("timestamp") > times[COUNT // 2]).ranges()[0]
    assert late.start in of(market, market.recording).to_table()["position"].to_pylist()  # no way from the term's start
    assert read_bytes(of(market, filter="timestamp < '2001-01-01'")) == 0
    assert read_bytes(of(market, filter="value ~ '^line 7$'")) == whole


def test_what_arrow_cannot_judge_narrows_nothing(market: Market) -> None:
    """Arrow takes times of another zone and unit in a list, but does not see what such a list rules out."""
    when = market.whole["timestamp"][COUNT // 2].value // 1000
    listed = pc.field("timestamp").isin(pa.array([when], pa.timestamp("us", "Europe/Berlin")))
    for expression in (listed, ~listed, listed & (pc.field("position") > 0)):
        assert of(market, filter=expression).to_table().equals(market.whole.filter(expression))


def test_bytes_that_are_missing_where_a_part_begins_are_told_after_the_rows_before(
    market: Market, tmp_path: Path
) -> None:
    path = shutil.copytree(market.path, tmp_path / "copy")
    (path / f"{market.recording}-{1 << 20}.rec").unlink()
    row = int(np.flatnonzero(market.whole["position"].to_numpy() > 3 << 19)[0])
    late = scan(path, [market.texts, market.recording], filter=pc.field("timestamp") >= market.whole["timestamp"][row])
    rows, text = until_failure(late)
    assert {row["recording_id"] for row in rows} == {market.texts}
    assert "missing" in text


@pytest.mark.parametrize("source", ["reserved(ns)", "sbe:number(us)"])
def test_times_of_messages_narrow_only_what_is_said_to_ascend(market: Market, source: str) -> None:
    options: dict[str, Any] = {"timestamp": source, "sbe": SCHEMA}
    first = START_NS if source == "reserved(ns)" else 0
    low, high = (pa.scalar(first + number * 1000, pa.timestamp("ns", "UTC")) for number in (2000, 2300))
    within = (pc.field("timestamp") >= low) & (pc.field("timestamp") < high)
    everything = of(market, market.recording, **options, filter=within)
    narrowed = of(market, market.recording, **options, filter=within, ascending=True)
    assert narrowed.count_rows() == everything.count_rows() == 300
    assert read_bytes(narrowed) <= 2 * GRAIN_BYTES < read_bytes(everything)


def test_text_of_filters(market: Market) -> None:
    quotes = of(market, market.recording, sbe=SCHEMA, message="Quote")
    whole = quotes.to_table()
    rows = whole.to_pylist()
    for text, select in (
        ("number < 10", lambda row: row["number"] < 10),
        ("number<10 and symbol='ABC'", lambda row: row["number"] < 10 and row["symbol"] == "ABC"),
        ("side = BUY and price in (100, 149)", lambda row: row["side"] == "BUY" and row["price"] in (100, 149)),
        ('side in (SELL) AND symbol != "XYZ" and number <= 0x20', lambda row: (
            row["side"] == "SELL" and row["symbol"] != "XYZ" and row["number"] <= 32)),
        ("symbol ~ '^[AX]' and number > 29990", lambda row: row["symbol"][0] in "AX" and row["number"] > 29990),
        ("price = null", lambda row: row["price"] is None),
        ("price != null and number == 3", lambda row: row["number"] == 3),
        ("timestamp > 2001-01-01T00:00:00Z and number < 2", lambda row: row["number"] < 2),
        ("number >= 29990 and timestamp != null", lambda row: row["number"] >= 29990),
    ):  # fmt: skip
        assert quotes.filter(text).to_table().to_pylist() == [row for row in rows if select(row)], text
    for text, reason in (
        ("", "a field is missing at the end"), ("number", "needs one of"), ("number >", "needs a value"),
        ("number > 1 or number < 5", "'or' is not understood there"), ("number > 1.5", "a whole number"),
        ("number > 99999999999999999999", "a whole number in its range"), ("number ~ 1", "~ is for text"),
        ("symbol ~", "needs a value"), ("symbol ~ '('", "no regular expression"),
        ("number in 1", "needs a list"), ("price > null", "nothing is"),
        ("timestamp > yesterday", "is no time"), ("price.x = 1", "which has no field 'x'"), ("a" * 20_000, "20000 characters"),
        ("__import__('os').system = 1", "there is no column '__import__'"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=reason):
            quotes.filter(text)
    with pytest.raises(UsageError, match=r"No match for FieldRef.Name\(pric\).*did you mean price"):
        quotes.filter(pc.field("pric") > 1)
    with pytest.raises(UsageError, match="it is int64, neither true nor false"):
        quotes.filter(pc.field("price") + 1)
    with pytest.raises(UsageError, match="not int"):
        quotes.filter(5)  # type: ignore[arg-type]
    for by_number in (pc.field(0) == 0, pc.field("price", 0) == 0, (pc.field("number") < 9) & (pc.field(0) == 0)):
        with pytest.raises(UsageError, match="names a column by number: name it, recording_id"):
            quotes.filter(by_number)
    assert quotes.filter(pc.field("symbol") == 'a"FieldPath(0)').count_rows() == 0


OF_TIMES = pa.schema(
    [
        ("at", pa.timestamp("ms", "UTC")), ("exact", pa.timestamp("ns", "UTC")),
        ("clock", pa.time64("ns")), ("minute", pa.time32("s")),
    ]
)  # fmt: skip
NINE_S = 9 * 3600
TIMES = pa.table([[0, 1, 253_402_214_400_000, None], [0, 5, 9, None], [NINE_S * 10**9 + n for n in (0, 500, 999)] + [None],
                  [NINE_S, NINE_S + 1, NINE_S + 60, None]], schema=OF_TIMES)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("clock = 09:00:00.000000500", [1]), ("clock >= 09:00:00.0000005", [1, 2]), ("clock < 09:00:00.000000500Z", [0]),
        ("clock in (09:00, 09:00:00.000000999)", [0, 2]), ("clock != 09:00:00", [1, 2]), ("minute = 09:00:00.000000500", []),
        ("minute > 09:00:00.5", [1, 2]), ("minute < 09:00:00.5", [0]), ("minute <= 23:59:59.9", [0, 1, 2]),
        ("at in (1970-01-01T00:00:00.000000500Z, 1970-01-01T00:00:00.001Z)", [1]), ("at = 1970-01-01T00:00:00.0000005", []),
        ("at != 1970-01-01T00:00:00.000000500Z", [0, 1, 2]), ("at > 1970-01-01T00:00:00.000000500Z", [1, 2]),
        ("at >= 1970-01-01T00:00:00.000000500Z", [1, 2]), ("at < 1970-01-01T00:00:00.000000500Z", [0]),
        ("at <= 1970-01-01T00:00:00.001000001Z", [0, 1]), ("at < 1970-01-01T00:00:00.001Z", [0]),
        ("exact = 1970-01-01T00:00:00.000000005Z", [1]), ("exact >= 1970-01-01T00:00:00.000000005Z", [1, 2]),
    ],
)  # fmt: skip
def test_times_count_to_their_last_digit(text: str, rows: list[int]) -> None:
    """Whatever the field's unit; 9999-12-31, the third time, is beyond ns."""
    selected = filters.rows_of(TIMES.to_batches()[0], filters.parse(text, OF_TIMES))
    assert selected.to_pylist() == rows


@pytest.mark.parametrize("text", ["09:00+02:00", "09:00:00-01:00", "24:00:01", "noon", "09:00:00.1234567891"])
def test_a_time_of_day_is_one_in_utc(text: str) -> None:
    with pytest.raises(UsageError, match=r"like 14:30:00|finer than nanoseconds|is no time"):
        filters.parse(f"clock < '{text}'", OF_TIMES)


def test_eight_digits_are_no_time() -> None:
    with pytest.raises(UsageError, match="a date or a number of ms: write 2026-01-31, or 20260131ms"):
        filters.parse("at > 20260131", OF_TIMES)


def test_a_program_that_filters_ends_with_no_thread_of_pyarrow(market: Market) -> None:
    """One that lets go of Python's memory while the program ends makes Python abort it."""
    ended_well(f"""
import os
from aeron_spark.tables import scan
before = set(os.listdir("/proc/self/task"))
assert scan({str(market.path)!r}, {market.texts}, filter="value ~ '7$'").to_table().num_rows == 50
assert set(os.listdir("/proc/self/task")) == before
""")


def test_borders_that_tell_nothing_right_cost_no_row(rng: random.Random) -> None:
    """By seed: where to look is taken from a part's first row; what is judged is what holds for all of its rows."""
    cells = 500
    times = np.sort(np.asarray([rng.randrange(cells * 4) for _ in range(cells + 1)], np.int64))
    time, schema = pc.field("time"), pa.schema([("time", pa.int64())])

    def facts(borders: Sequence[int]) -> Known:
        known = times[np.asarray(borders) // GRAIN_BYTES]
        wrong = pa.array([rng.choice([None, rng.randrange(cells * 4)]) for _ in borders[1:]], pa.int64())
        late, right = (pa.array(known[:-1] - by) for by in (rng.randrange(cells), 0))
        return Known(
            lambda first, last: (time >= int(known[first])) & (time <= int(known[last])),
            {"time": rng.choice([wrong, late, right])},
        )

    for _ in range(100):
        low = rng.randrange(cells * 4)
        high = low + rng.randrange(cells * 2)
        spans = Pruner((time >= low) & (time < high), schema, is_never_null=True).spans(0, cells * GRAIN_BYTES, facts)
        possible = np.flatnonzero((times[1:] >= low) & (times[:-1] < high)) * GRAIN_BYTES
        assert [at for span in spans for at in range(span.start, span.end, GRAIN_BYTES)] == possible.tolist()


def test_a_filter_is_not_asked_about_positions_of_no_message(market: Market, monkeypatch: pytest.MonkeyPatch) -> None:
    border = 100_016
    monkeypatch.setattr(pruning, "GRAIN_BYTES", border)
    positions = of(market, market.recording).to_table(columns=["position"])["position"].to_pylist()
    near = pc.divide(pc.scalar(1000), pc.field("position") - border) > 0
    assert border not in positions
    assert of(market, market.recording, filter=near).count_rows() == sum(0 < one - border <= 1000 for one in positions)


def test_few_parts_are_judged_where_borders_tell_where_to_look(monkeypatch: pytest.MonkeyPatch) -> None:
    cells, judged = 2000, 0
    time, possible = pc.field("time"), Pruner.possible

    def facts(borders: Sequence[int]) -> Known:
        return Known(
            lambda first, last: (time >= borders[first]) & (time <= borders[last]),
            {"time": pa.array(borders[:-1], pa.int64())},
        )

    def counted(pruner: Pruner, facts: Sequence[pc.Expression]) -> list[bool]:
        nonlocal judged
        judged += len(facts)
        return possible(pruner, facts)

    monkeypatch.setattr(Pruner, "possible", counted)
    low, high = 777 * GRAIN_BYTES + 5, 797 * GRAIN_BYTES + 5
    pruner = Pruner((time >= low) & (time < high), pa.schema([("time", pa.int64())]), is_never_null=False)
    assert pruner.spans(0, cells * GRAIN_BYTES, facts) == [Span(777 * GRAIN_BYTES, 798 * GRAIN_BYTES)]
    assert judged < 10
