"""Recordings merged by time and published again: order, times, commands, subscribers that hold it back, moved times.

Method: recordings whose messages carry their number, with reserved values by seed: equal, descending and missing ones too.
The merge is compared with a stable sort of everything; a replay is recorded, or read by a subscription, and compared with it.
"""

from __future__ import annotations

import json
import math
import os
import pty
import random
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from aeron_spark import ClosedError, UsageError, WaitTimeoutError
from aeron_spark.archive.time_text import parse_time_source
from aeron_spark.cli.__main__ import main
from aeron_spark.cli.replay_keys import commands_of_lines, is_in_foreground, keys_of_terminal
from aeron_spark.client import Client
from aeron_spark.sbe import Decoder, Encoder
from aeron_spark.subscription import Subscription
from aeron_spark.tables import Scan, pruning, scan, scans
from aeron_spark.tables.replay import Command, Replay, State
from aeron_spark.tables.shift import Shift
from aeron_spark.testing import RecordedFolder, Servers, wait_until
from tests.kit import hiding
from tests.kit.cnc import Cnc

TIMEOUT_S = 60
PUBLISHER_LIMIT = 1  # type of counter
START_NS = 1_800_000_000_000_000_000
COUNT = 3000
SCHEMA = """<?xml version="1.0" encoding="UTF-8"?>
<sbe:messageSchema xmlns:sbe="http://fixprotocol.io/2016/sbe" package="prices" id="7" version="1" byteOrder="{order}">
  <types>
    <composite name="messageHeader"><type name="blockLength" primitiveType="uint16"/>
      <type name="templateId" primitiveType="uint16"/><type name="schemaId" primitiveType="uint16"/>
      <type name="version" primitiveType="uint16"/></composite>
    <composite name="UTCTimestamp"><type name="time" primitiveType="uint64"/>
      <type name="unit" primitiveType="uint8" presence="constant">6</type></composite>
  </types>
  <sbe:message name="Quote" id="1"><field name="number" id="1" type="int64"/><field name="sent" id="2" type="UTCTimestamp"/>
    <field name="made" id="3" type="int64" presence="optional" sinceVersion="1"/></sbe:message>
  <sbe:message name="Status" id="2"><field name="number" id="1" type="int64"/></sbe:message>
</sbe:messageSchema>"""
LITTLE, BIG = (SCHEMA.format(order=order) for order in ("littleEndian", "bigEndian"))


@dataclass(frozen=True)
class Market:
    """A folder with four recordings; 0 to 2 have times in their reserved values, 3 has SBE messages."""

    servers: Servers
    folder: RecordedFolder
    path: Path
    client: Client

    def messages(self, *recordings: int, **options: Any) -> Scan:
        return scan(self.path, list(recordings or (0, 1, 2)), timestamp="reserved(ns)", **options)


def values(number: int, count: int) -> pa.Array:
    return pa.array([f"{number}:{index}".encode() for index in range(count)], pa.binary())


@pytest.fixture(scope="module")
def market(module_rng: random.Random) -> Iterator[Market]:
    rand = module_rng
    with Servers(settings={"aeron.archive.segment.file.length": "128k"}) as servers:
        folder = RecordedFolder(servers)
        for number in range(3):
            # Few times for many messages, so that equal ones are in all recordings.
            times = sorted(rand.randrange(COUNT // 4) * 1000 for _ in range(COUNT))
            if number == 2:
                for _ in range(300):
                    times[rand.randrange(1, COUNT)] = rand.randrange(COUNT // 4) * 1000
            stamps = [START_NS + time for time in times]
            if number == 1:
                for index in [0, 1, *(rand.randrange(COUNT) for _ in range(300))]:
                    stamps[index] = 0  # no time
            channel = "aeron:ipc?term-length=64k"
            folder.write(values(number, COUNT), stream_id=100 + number, channel=channel, reserved_values=stamps)
        rows = [{"number": n, "sent": {"time": 1_700_000_000_000_000 + n}, "made": None} for n in range(10)]
        folder.write(rows, stream_id=200, schema=LITTLE, message="Quote")
        with Client(servers.aeron_dir, name="test") as client:
            yield Market(servers, folder, folder.path, client)


def effective(stamps: Sequence[int]) -> np.ndarray:
    """The times by which a recording's messages are merged."""
    found, latest = [], next(stamp for stamp in stamps if stamp)
    for stamp in stamps:
        latest = max(latest, stamp) if stamp else latest
        found.append(latest)
    return np.array(found, np.int64)


def sorted_rows(market: Market, *recordings: int) -> tuple[pa.Table, np.ndarray]:
    """All rows in the order of a stable sort, and their times."""
    parts = [market.messages(one).to_table() for one in recordings or (0, 1, 2)]
    times = np.concatenate([effective(part["reserved_value"].to_pylist()) for part in parts])
    order = np.argsort(times, kind="stable")
    return pa.concat_tables(parts).take(pa.array(order)), times[order]


def texts(rows: pa.Table | pa.RecordBatch) -> list[bytes]:
    found: list[bytes] = rows.column("value").to_pylist()
    return found


# -- the merge ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", [1, 64 << 20])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_merge_is_a_stable_sort(market: Market, monkeypatch: pytest.MonkeyPatch, memory: int, threads: int) -> None:
    monkeypatch.setattr(scans, "MEMORY_BYTES", memory)
    monkeypatch.setattr(scans, "MIN_PIECE_BYTES", 10_000)
    want, _ = sorted_rows(market)
    table = market.messages(threads=threads, batch_rows=700)
    with table.by_time() as merged:
        batches = list(merged)
    assert max(batch.num_rows for batch in batches) <= 700
    assert pa.Table.from_batches(batches, table.schema).equals(want)


def test_a_merge_takes_columns_and_a_filter(market: Market) -> None:
    middle = START_NS + COUNT // 8 * 1000
    table = market.messages(0, 1, columns=["value"], filter=f"reserved_value >= {middle}")
    want, _ = sorted_rows(market, 0, 1)
    kept = want.filter(pa.array([one >= middle for one in want["reserved_value"].to_pylist()]))
    with table.by_time() as merged:
        assert pa.Table.from_batches(list(merged), table.schema).equals(kept.select(["value"]))


def test_until_never_looks_ahead(market: Market) -> None:
    want, times = sorted_rows(market)
    found: list[pa.RecordBatch] = []
    with market.messages(batch_rows=500).by_time() as merged:
        for when in (0, START_NS - 1, START_NS, START_NS + 100_000, START_NS + 100_000, START_NS + 500_500):
            found += merged.until(when)
            assert sum(batch.num_rows for batch in found) == int((times <= when).sum())
        found += merged
    assert pa.Table.from_batches(found).equals(want)
    with pytest.raises(ClosedError, match="by_time"):
        next(merged)


def test_until_counts_in_ns_whatever_the_unit(market: Market) -> None:
    _, times = sorted_rows(market)
    when = START_NS + 100_000
    with market.messages(time_unit="us").by_time() as merged:
        assert sum(batch.num_rows for batch in merged.until(when)) == int((times <= when).sum()) < len(times)


def test_a_merge_goes_by_the_chosen_time_beside_a_field_of_its_name(market: Market) -> None:
    """A field `timestamp` of the messages hides the column of that name, not the time that was chosen."""
    schema = LITTLE.replace('"made"', '"timestamp"')
    with Servers() as servers:
        folder = RecordedFolder(servers)
        rows = [{"number": n, "sent": {"time": n}, "timestamp": 100 - n} for n in range(10)]
        stamps = [START_NS + 10 * n for n in range(10)]
        folder.write(rows, schema=schema, message="Quote", reserved_values=stamps)
        table = scan(
            folder.path, sbe=schema, message="Quote", timestamp="reserved(ns)", columns=["number", "timestamp"]
        )
        with table.by_time(START_NS + 25) as merged:
            assert pa.Table.from_batches(merged.until(START_NS + 60)).to_pylist() == [
                {"number": n, "timestamp": 100 - n} for n in range(3, 7)
            ]


@pytest.mark.parametrize("offset", [-1, 0, 100_000, 500_500, COUNT * 1000])
def test_since_cuts_by_the_time_that_counts(market: Market, offset: int) -> None:
    """A message without a time, or with an earlier one, counts as of the time before it: it comes, or does not, with that."""
    want, times = sorted_rows(market)
    with market.messages().by_time(START_NS + offset) as merged:
        rows = [row for batch in merged for row in texts(batch)]
    assert rows == texts(want.filter(pa.array(times >= START_NS + offset)))


def test_since_reads_only_what_it_must(market: Market, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    read_whole = scans.read_whole

    def counted(source: Any, piece: Any, *others: Any) -> Any:
        read.append(piece.part.end - piece.part.start)
        return read_whole(source, piece, *others)

    monkeypatch.setattr(scans, "read_whole", counted)
    monkeypatch.setattr(pruning, "GRAIN_BYTES", 16 << 10)
    table = market.messages(0, ascending=True, threads=1)
    for since in (None, START_NS + COUNT // 8 * 1000):
        with table.by_time(since) as merged:
            for _ in merged:
                pass
        read.append(0)
    middle = read.index(0)
    assert sum(read[middle:]) < sum(read[:middle]) * 3 // 4


def test_a_merge_reads_ahead_by_a_piece_of_each_recording(market: Market, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scans, "MEMORY_BYTES", 1)
    monkeypatch.setattr(scans, "MIN_PIECE_BYTES", 10_000)
    reads = 0
    read_whole = scans.read_whole

    def counted(*arguments: Any) -> Any:
        nonlocal reads
        reads += 1
        return read_whole(*arguments)

    monkeypatch.setattr(scans, "read_whole", counted)
    for threads, most in ((1, 1), (2, 2)):
        reads = 0
        with market.messages(threads=threads).by_time() as merged:
            assert reads <= most * 3
            next(merged)
            assert reads <= most * 3 + most
            for _ in merged:
                pass
        assert reads > 30


def test_what_has_no_order_of_time(market: Market) -> None:
    with pytest.raises(UsageError, match=r"recording 3: the first 10 messages have no time.*choose another time"):
        next(market.messages(0, 3).by_time())
    with pytest.raises(UsageError, match="leave out follow"):
        scan(market.path, 0, follow=True).by_time()
    with (
        market.client.add_subscription("aeron:ipc", 9999) as live,
        pytest.raises(UsageError, match="only what is recorded"),
    ):
        scan(live, timestamp="reserved(ns)").by_time()


# -- the replay --------------------------------------------------------------------------------------------------------------


def replayed(market: Market, capsys: pytest.CaptureFixture[str], streams: Sequence[int], *words: str) -> dict[str, Any]:
    """The summary of a replay by the command line that an archive records, and where: `recorded`."""
    archive = market.servers.archive
    before = len(archive.recordings())
    ids = [archive.start_recording("aeron:ipc", stream) for stream in streams]
    line = ["archive", "replay", str(market.path), *words, "--json", "--dir", str(market.servers.aeron_dir)]
    assert main([*line, "--timeout", str(TIMEOUT_S)]) == 0
    summary: dict[str, Any] = json.loads(capsys.readouterr().out)
    made = [one.recording_id for one in archive.recordings()[before:]]
    for one in made:
        wait_until(lambda one=one: archive.stop_position(one) is not None, TIMEOUT_S, f"recording {one} to stop")
    for subscription in ids:
        archive.stop_recording_subscription(subscription)
    return summary | {"recorded": made}


@pytest.mark.parametrize("speed", ["1", "max", "0.5"])
def test_a_replay_of_many_has_the_bytes_and_the_order_of_the_merge(
    market: Market, capsys: pytest.CaptureFixture[str], speed: str
) -> None:
    words = ["0", "1", "2", "--by", "reserved", "--speed", speed, "--channel", "aeron:ipc", "--stream", "300"]
    summary = replayed(market, capsys, [300], *words)
    want, times = sorted_rows(market)
    found = scan(market.path, summary["recorded"], columns=["reserved_value", "value"]).to_table()
    assert found.equals(want.select(["reserved_value", "value"]))
    assert (summary["ended"], summary["messages"], summary["rounds"]) == ("end", want.num_rows, 1)
    assert summary["bytes"] == sum(map(len, texts(want)))
    of_errors, of_lateness = summary["interval_errors"], summary["lateness"]
    if speed == "max":
        assert of_errors["count"] == of_lateness["count"] == 0
    else:
        # Never too early; how late is for the bench to tell.
        assert summary["seconds"] >= (times[-1] - times[0]) / 1e9 / float(speed)
        assert of_lateness["count"] == want.num_rows
        assert sum(count for _, _, count in of_errors["histogram"]) == of_errors["count"] > 0


def test_each_recording_goes_to_its_own_channel(market: Market, capsys: pytest.CaptureFixture[str]) -> None:
    """With the session that was recorded, once the publication that had it does not linger any more."""

    def lingering() -> list[str]:
        labels = [one.label for one in Cnc(market.servers.aeron_dir).counters() if one.type_id == PUBLISHER_LIMIT]
        return [label for label in labels if label.split()[3] in {"100", "101", "102"}]

    wait_until(lambda: not lingering(), TIMEOUT_S, "the end of the recorded publications", state=lingering)
    summary = replayed(
        market, capsys, [100, 101, 102], "0", "1", "2", "--by", "reserved", "--own-channels", "--speed", "max"
    )
    assert [one["recording_ids"] for one in summary["publications"]] == [[0], [1], [2]]
    by_stream = {one.stream_id: one.recording_id for one in market.servers.archive.recordings() if one.recording_id > 3}
    for number in range(3):
        found = scan(market.path, by_stream[100 + number], columns=["reserved_value", "value"]).to_table()
        assert found.equals(market.messages(number, columns=["reserved_value", "value"]).to_table())


class Player:
    """A replay to a subscription of this thread. `steps` are done one after the other, each when its condition holds."""

    def __init__(self, market: Market, *recordings: int, term: str = "1m", **options: Any) -> None:
        self.channel = f"aeron:ipc?term-length={term}"
        self.market, self.options = market, options
        self.messages = market.messages(*recordings)
        self.seen: list[bytes] = []
        self.subscription: Subscription | None = None

    def poll(self) -> None:
        assert self.subscription is not None
        while (batch := self.subscription.poll_batch()).num_rows:
            self.seen += texts(batch)

    def play(
        self, steps: Sequence[tuple[Callable[[State], bool], Sequence[Command]]] = (), *, polls: bool = True
    ) -> Replay:
        left = list(steps)

        def commands() -> Sequence[Command]:
            if polls:
                self.poll()
            if left and left[0][0](replay.state):
                return left.pop(0)[1]
            return ()

        client = self.market.client
        with (
            client.add_subscription("aeron:ipc", 400) as self.subscription,
            client.add_exclusive_publication(self.channel, 400) as publication,
        ):
            publication.wait_connected(TIMEOUT_S)
            options = {"wait_s": TIMEOUT_S, **self.options}
            replay = self.replay = Replay(self.messages, lambda _: publication, commands=commands, **options)
            try:
                self.summary = replay.run()
            finally:
                self.poll()
        assert not left
        return replay


def after(count: int) -> Callable[[State], bool]:
    return lambda state: state.messages == count


def test_fields_with_names_of_columns_are_not_what_is_replayed(market: Market) -> None:
    """A merge and a replay, also from a time on, take the messages' own order, times and bytes."""
    both = [
        market.folder.write(hiding.MESSAGES, reserved_values=stamps).recording_id for stamps in ([1, 3, 5], [2, 4, 6])
    ]
    messages = scan(
        market.path, both, timestamp="reserved(ns)", sbe=hiding.SCHEMA, message="Row", columns=["timestamp", "price"]
    )
    rows = [row for batch in messages.by_time() for row in batch.to_pylist()]
    assert rows == [{"timestamp": -price, "price": price} for price in hiding.PRICES for _ in range(2)]
    player = Player(market, speed=math.inf)
    player.messages = messages
    player.play([(after(0), [Command("seek", 3)])])
    assert player.seen == [message for message in hiding.MESSAGES[1:] for _ in range(2)]


def test_pause_step_seek_and_speed(market: Market) -> None:
    player = Player(market)
    want, times = sorted_rows(market)
    all_texts = texts(want)
    # By the messages' own time, as a seek reads them; recordings 1 and 2 have others beside.
    at = START_NS + 300_000
    player.messages = market.messages(0)
    want, times = sorted_rows(market, 0)
    all_texts = texts(want)
    first = int(np.searchsorted(times, at))
    player.play(
        [
            (after(0), [Command("pause")]),
            (after(0), [Command("step", 3)]),
            (after(3), [Command("step", 1), Command("step", 1)]),
            (after(5), [Command("seek", at), Command("step", 2)]),
            (after(7), [Command("move", START_NS - 1 - int(times[first + 1]))]),
            (after(7), [Command("step", 1)]),
            (after(8), [Command("speed", math.inf), Command("resume")]),
        ]
    )
    assert player.seen == [*all_texts[:5], *all_texts[first : first + 2], *all_texts]
    assert player.summary.ended == "end"


def test_a_seek_keeps_messages_without_a_time(market: Market) -> None:
    player = Player(market)
    want, times = sorted_rows(market)
    at = START_NS + 300_000
    player.play([(after(0), [Command("pause"), Command("seek", at), Command("speed", math.inf), Command("resume")])])
    assert player.seen == texts(want.filter(pa.array(times >= at)))


def test_moves_add_up(market: Market) -> None:
    """Also before a message of the place that the first one goes to was published."""
    player = Player(market, 0)
    want, times = sorted_rows(market, 0)
    by = 200_000
    player.play(
        [
            (after(0), [Command("pause"), Command("seek", START_NS), Command("move", by)]),
            (after(0), []),
            (after(0), [Command("move", by), Command("speed", math.inf), Command("resume")]),
        ]
    )
    assert player.seen == texts(want.filter(pa.array(times >= START_NS + 2 * by)))


def test_a_move_before_the_first_message_is_from_that(market: Market) -> None:
    """Also before that message was read; a pause counts for nothing."""
    by = 200_000
    want, times = sorted_rows(market, 0)
    kept = texts(want.filter(pa.array(times >= times[0] + by)))
    rest = [Command("speed", math.inf), Command("resume")]
    player = Player(market, 0)
    player.play([(after(0), [Command("pause"), Command("move", by / 2), Command("move", by / 2), *rest])])
    assert player.seen == kept
    player = Player(market, 0)
    paused: list[float] = []

    def is_long(state: State) -> bool:
        paused.append(time.monotonic())
        return player.replay._is_anchored and paused[-1] - paused[0] > 0.1

    player.play([(after(0), [Command("pause")]), (is_long, [Command("move", by), *rest])])
    assert player.seen == kept


def test_a_slow_replay_is_hurried_and_ended(market: Market) -> None:
    player = Player(market, 0, speed=1e-6)  # a day for the first tenth of a second
    more = [Command("faster"), Command("slower"), Command("toggle"), Command("toggle"), Command("speed", math.inf)]
    player.play([(lambda state: state.messages > 0, more)])
    assert player.seen == texts(market.messages(0).to_table())
    player = Player(market, 0, speed=1e-6)
    player.play([(lambda state: state.messages > 0, [Command("quit")])])
    assert player.summary.ended == "quit"
    assert len(player.seen) == player.summary.messages < COUNT


def test_a_loop_begins_again(market: Market) -> None:
    player = Player(market, 0, speed=math.inf, loop=True)
    player.play([(lambda state: state.rounds == 2, [Command("quit")])])
    once = texts(market.messages(0).to_table())
    assert player.seen[: 2 * COUNT] == once * 2
    assert player.summary.ended == "quit"


def test_a_loop_over_no_messages_ends(market: Market) -> None:
    player = Player(market, 0, loop=True)
    player.messages = player.messages.filter("position < 0")
    player.play()
    assert (player.summary.ended, player.summary.rounds) == ("end", 1)


def test_slow_subscribers_hold_it_back_and_miss_nothing(market: Market) -> None:
    player = Player(market, 0, term="64k", speed=math.inf)
    waited: list[str] = []

    def on_progress(state: State) -> None:
        if state.waits_for:
            waited.append(state.waits_for)
            player.poll()

    player.options["on_progress"] = on_progress
    player.play(polls=False)
    assert player.seen == texts(market.messages(0).to_table())
    assert set(waited) == {"slow subscribers"}
    assert player.summary.held_seconds > 0


def test_subscribers_that_take_nothing_end_it(market: Market) -> None:
    player = Player(market, 0, term="64k", speed=math.inf, wait_s=0.2)
    with pytest.raises(WaitTimeoutError, match=r"waited 0\.2 s for slow subscribers.*by --timeout") as failure:
        player.play(polls=False)
    assert 0 < failure.value.accepted == len(player.seen) < COUNT
    assert player.seen == texts(market.messages(0).to_table())[: len(player.seen)]


def test_a_pause_is_no_wait_for_subscribers(market: Market) -> None:
    """Held back, paused for longer than subscribers may take, and resumed: that is no error, and not counted."""
    wait_s = 0.5
    player = Player(market, 0, term="64k", speed=math.inf, wait_s=wait_s)
    paused_at: list[float] = []
    resumed: list[State] = []

    def is_held(state: State) -> bool:
        if state.waits_for:
            paused_at.append(time.monotonic())
        return bool(paused_at)

    def has_waited(state: State) -> bool:
        if time.monotonic() < paused_at[0] + 1.2 * wait_s:
            return False
        resumed.append(state)
        return True

    player.options["on_progress"] = lambda _: resumed and player.poll()
    player.play([(is_held, [Command("pause")]), (has_waited, [Command("resume")])], polls=False)
    assert player.seen == texts(market.messages(0).to_table())
    assert player.summary.held_seconds < player.summary.seconds - wait_s


def test_ctrl_c_ends_it(market: Market) -> None:
    def on_progress(state: State) -> None:
        if state.messages:
            signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    player = Player(market, 0, on_progress=on_progress, speed=1e-6)
    player.play()
    assert player.summary.ended == "interrupt"
    assert COUNT > len(player.seen) == player.summary.messages > 0
    assert signal.getsignal(signal.SIGINT) is before


def test_reserved_values_are_moved_to_now(market: Market, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["0", "1", "--by", "reserved", "--speed", "max", "--channel", "aeron:ipc", "--stream", "301", "--shift-to"]
    summary = replayed(market, capsys, [301], *words, "2030-01-01T00:00:00Z")
    want, times = sorted_rows(market, 0, 1)
    by = 1_893_456_000 * 10**9 - int(times[0])
    found = scan(market.path, summary["recorded"], columns=["reserved_value", "value"]).to_table()
    assert texts(found) == texts(want)
    moved = [stamp + by if stamp else 0 for stamp in want["reserved_value"].to_pylist()]
    assert found["reserved_value"].to_pylist() == moved
    assert summary["shift_ns"] == by


# -- moved times in SBE messages ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", [LITTLE, BIG])
def test_fields_of_messages_are_moved(schema: str) -> None:
    rows = [{"number": n, "sent": {"time": 10**15 + n}, "made": None if n % 3 else 10**12 + n} for n in range(8)]
    quotes = Encoder(schema, "Quote").encode(pa.RecordBatch.from_pylist(rows)).to_pylist()
    status = Encoder(schema, "Status").encode(pa.RecordBatch.from_pylist([{"number": 5}])).to_pylist()
    order = "little" if schema is LITTLE else "big"
    old = (16).to_bytes(2, order) + quotes[0][2:6] + (0).to_bytes(2, order) + quotes[0][8:24] + b"of later"
    given = pa.array([b"skipped", *quotes, *status, old, b"no message", quotes[0][:20]], pa.binary()).slice(1)
    shift = Shift([parse_time_source(text, "shift") for text in ("sbe:sent", "sbe:made(ms)", "reserved(us)")], schema)
    stamps = np.arange(len(given)) * 7
    moved, reserved = shift(given, stamps, 3_000_000_500)
    assert reserved.tolist() == [0, *(stamps[1:] + 3_000_000)]
    assert moved.to_pylist()[8] == status[0]
    assert moved.to_pylist()[9][24:] == b"of later"
    assert moved.to_pylist()[10:] == given.to_pylist()[10:]
    decoder = Decoder(schema, "Quote")
    found = decoder.decode(moved.take(pa.array([*range(8), 9]))).to_pylist()
    before = decoder.decode(given.take(pa.array([*range(8), 9]))).to_pylist()
    for new, past in zip(found, before, strict=True):
        assert new["number"] == past["number"]
        assert new["sent"]["time"] - past["sent"]["time"] == 3_000_000
        assert new["made"] == (None if past["made"] is None else past["made"] + 3000)
    assert before[8]["made"] is None
    assert given.to_pylist()[0] == quotes[0]  # the caller's messages are as they were


def test_what_cannot_be_moved() -> None:
    def moved(text: str, schema: str | None = LITTLE) -> Shift:
        return Shift([parse_time_source(text, "shift")], schema)

    for text, schema, reason in (
        ("index", LITTLE, "no part of a message"),
        ("sbe:sent", None, "needs the SBE schema"),
        ("sbe:other", LITTLE, "no message of the SBE schema has such a field"),
        ("sbe:number", LITTLE, r"write sbe:number\(ns\)"),
        ("sbe:sent", LITTLE.replace("uint64", "uint32"), "only an integer of 8 bytes"),
        ("sbe:sent", LITTLE.replace('"time"', '"clock"'), "no member 'time'"),
    ):
        with pytest.raises(UsageError, match=reason):
            moved(text, schema)
    quote = Encoder(LITTLE, "Quote").encode(
        pa.RecordBatch.from_pylist([{"number": 1, "sent": {"time": 5}, "made": 2**63 - 2}])
    )
    for text, by in (("sbe:sent", -(10**9)), ("sbe:made(ns)", 10**9)):
        with pytest.raises(UsageError, match="leaves the range of its type"):
            moved(text)(quote, np.zeros(1, np.int64), by)
    with pytest.raises(UsageError, match="a reserved value: shifted by 10, a time leaves"):
        moved("reserved(ns)")(quote, np.array([2**63 - 5]), 10)


# -- the command line --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("PATH", "say by which: --by index"),
        ("3 --loop", "--loop needs --by"),
        ("3 --shift reserved", "--shift needs --by"),
        ("PATH --by index", "say where to publish"),
        ("PATH --by index --channel aeron:ipc --own-channels", "say where to publish"),
        ("PATH --by index --own-channels --stream 4", "--stream is of --channel"),
        ("PATH --by index --channel aeron:ipc --from 64", "--from is for one recording"),
        ("PATH x --by index --channel aeron:ipc", "a recording is a number"),
        ("PATH 77 --by index --channel aeron:ipc", "unknown recording id"),
        ("PATH --by sent --channel aeron:ipc", "need a schema"),
        ("PATH --by index --channel aeron:ipc --shift reserved", "--shift needs --shift-to"),
        ("PATH --by index --channel aeron:ipc --shift-to now", "no part of a message"),
        ("PATH --by index --channel aeron:ipc --speed 0", "a speed of 0"),
        ("PATH --by index --channel aeron:ipc --speed fast", "neither a number"),
        ("PATH 0 --by index --channel aeron:ipc --stream 999 --timeout 0.1", "no subscriber"),
    ],
)
def test_wrong_lines_say_what_to_do(
    market: Market, capsys: pytest.CaptureFixture[str], words: str, reason: str
) -> None:
    line = words.replace("PATH", str(market.path)).split()
    assert main(["archive", "replay", *line, "--dir", str(market.servers.aeron_dir)]) != 0
    assert reason in capsys.readouterr().err


def test_lines_are_commands(capsys: pytest.CaptureFixture[str]) -> None:
    reader, writer = os.pipe()
    taken = commands_of_lines(reader)
    assert taken() == []
    os.write(writer, b"pause\nstep\nstep 12\nspeed max\nspeed 2.5\nseek +1.5\nseek -3\nseek 5ns\nresum")
    assert [(one.kind, one.value) for one in taken()] == [
        *(("pause", 0), ("step", 1), ("step", 12), ("speed", math.inf), ("speed", 2.5)),
        *(("move", 1.5e9), ("move", -3e9), ("seek", 5)),
    ]
    os.write(writer, b"e\nspeed 0\nspeed nan\nspeed 2000000\n")
    os.write(writer, b"jump\nspeed x\nstep \xc2\xb2\nseek +x\nseek +nan\nseek -inf\nseek never\npause now\nquit")
    os.close(writer)
    assert [one.kind for one in taken()] == ["resume"]
    assert [one.kind for one in taken()] == ["quit"]
    assert taken() == []
    os.close(reader)
    assert capsys.readouterr().err.count("replay: ") == 11


def test_a_replay_in_the_background_asks_for_no_keys() -> None:
    """It would be stopped. Its terminal belongs to a shell, here this process' child that leads the session."""
    child, terminal = pty.fork()
    if not child:
        leader, inner = os.getpgrp(), os.fork()
        if not inner:
            is_ours = [is_in_foreground(0)]
            os.setpgid(0, 0)
            is_ours.append(is_in_foreground(0))
            os._exit(0 if is_ours == [True, False] and os.getpgrp() != leader else 1)
        os._exit(os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1]))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    os.close(terminal)


def test_keys_are_commands_and_the_terminal_is_as_before(capsys: pytest.CaptureFixture[str]) -> None:
    ours, theirs = pty.openpty()
    import termios

    before = termios.tcgetattr(theirs)
    with keys_of_terminal(theirs) as taken:
        assert list(taken()) == []
        os.write(ours, b" n+-fbxq")
        found: list[Command] = []
        wait_until(lambda: bool(found.extend(taken()) or len(found) == 7), TIMEOUT_S, "seven commands")
    assert [one.kind for one in found] == ["toggle", "step", "faster", "slower", "move", "move", "quit"]
    assert termios.tcgetattr(theirs) == before
    assert "space pause" in capsys.readouterr().err
    os.close(ours)
    os.close(theirs)
