"""Recordings published again, merged by time, as fast as they were recorded or at another speed.

A thread reads and merges ahead; the caller's thread publishes each message when it is due (`timed`), and looks at the
commands between two calls into C, every 50 ms.
"""

from __future__ import annotations

import math
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import numpy as np

from aeron_spark.archive.search import clamped_ns
from aeron_spark.errors import UsageError, WaitTimeoutError
from aeron_spark.publication import Publication
from aeron_spark.tables.merged import Part
from aeron_spark.tables.scans import Scan
from aeron_spark.tables.shift import Shift
from aeron_spark.timed import Spread, Timed, TimedPublisher, now_ns
from aeron_spark.types import Outcome

__all__ = ["Command", "Replay", "State", "Summary", "checked_speed"]

#: A call into C lasts no longer, so that commands are obeyed soon.
SLICE_S = 0.05
#: From then on a wait for subscribers moves what is left of the replay; shorter ones are caught up with.
HELD_S = 0.1
#: Parts that are ready to be published.
_AHEAD = 4
_PART_ROWS = 16_384
#: The first message is due so long after the start, so that it is in time.
_LEAD_NS = 2_000_000
_MAX_SPEED, _MIN_SPEED = 1e6, 1e-6


@dataclass(frozen=True, slots=True)
class Command:
    """What to do while a replay runs. `value`: a speed, a number of messages, or a time in ns (`move`: a difference)."""

    kind: Literal["pause", "resume", "toggle", "step", "speed", "faster", "slower", "seek", "move", "quit"]
    value: float = 0


@dataclass(slots=True)
class State:
    """How far a replay is; `time_ns` is the time of its last message, `held_s` how long subscribers held it back."""

    messages: int = 0
    bytes: int = 0
    time_ns: int | None = None
    speed: float = 1.0
    is_paused: bool = False
    held_s: float = 0.0
    waits_for: str = ""
    rounds: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a replay did. `errors`: of the intervals between messages, against the schedule's; `lateness`: of messages."""

    ended: str
    messages: int
    bytes: int
    seconds: float
    held_seconds: float
    rounds: int
    shift_ns: int | None
    errors: Spread
    lateness: Spread


class _Feed:
    """Messages from a time on, merged and made ready by a thread of its own."""

    def __init__(self, messages: Scan, start_ns: int | None, ready: Callable[[Part], Timed]) -> None:
        self._queue: queue.Queue[Timed | BaseException | None] = queue.Queue(_AHEAD)
        self._is_over = threading.Event()
        self._ready = ready
        self._merged = messages.by_time(start_ns)
        self._thread = threading.Thread(target=self._run, name="aeron-replay", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            for part in self._merged.parts():
                for start in range(0, len(part.times), _PART_ROWS):
                    piece = part.slice(start, min(start + _PART_ROWS, len(part.times)))
                    if not self._put(self._ready(piece)):
                        return
            self._put(None)
        except BaseException as failure:  # noqa: BLE001 - raised where the part is taken
            self._put(failure)

    def _put(self, item: Timed | BaseException | None) -> bool:
        while not self._is_over.is_set():
            try:
                self._queue.put(item, timeout=SLICE_S)
            except queue.Full:
                continue
            return True
        return False

    def take(self, seconds: float) -> Timed | None:
        """The next messages, None at the end. queue.Empty: it is not read yet."""
        item = self._queue.get(timeout=seconds)
        if isinstance(item, BaseException):
            raise item
        return item

    def close(self) -> None:
        """End the thread, and what it reads."""
        self._is_over.set()
        self._thread.join()
        self._merged.close()


class Replay:
    """One timed replay of a scan's messages: `run` does it.

    `publication_of` gives the publication of each recording; the recordings are those of the scan, by id. `speed`: how many
    times as fast as it was, `inf` for no waits. `shift_to_ns` gives the time at which the first message is to be, when a
    round begins; then the times that `shift` names are moved by the difference. `wait_s`: how long subscribers may hold the
    replay back, or be missing, before it is an error; 0: for ever. `commands` gives what the user wants now.
    """

    def __init__(
        self,
        messages: Scan,
        publication_of: Callable[[int], Publication],
        *,
        speed: float = 1.0,
        loop: bool = False,
        shift: Shift | None = None,
        shift_to_ns: Callable[[], int] | None = None,
        wait_s: float = 10.0,
        commands: Callable[[], Sequence[Command]] = tuple,
        on_progress: Callable[[State], object] | None = None,
    ) -> None:
        self.state = State(speed=checked_speed(speed))
        self._messages = messages.select([messages.own(name) for name in ("recording_id", "reserved_value", "value")])
        self._publication_of = publication_of
        self._loop = loop
        self._shift, self._shift_to_ns, self._shift_ns = shift, shift_to_ns, None if shift is None else 0
        self._wait_s = wait_s
        self._commands = commands
        self._on_progress = on_progress
        self._index_of: dict[int, int] = {}
        self._publications: list[Publication] = []
        self._publisher = TimedPublisher(self._publications)
        self._steps = 0
        self._seek_ns: int | None = None
        #: Where the last seek went, or the round begins, until a message is published.
        self._sought_ns: int | None = None
        #: Moves from a place that is not known yet.
        self._moves: list[Command] = []
        self._is_anchored = self._is_new_round = False
        self._ended = ""
        #: Where the clock of the recordings stands in a pause.
        self._stands_ns = 0
        self._held_since: float | None = None

    def run(self) -> Summary:
        """Publish them all. In the main thread, Ctrl-C ends it in order.

        WaitTimeoutError: subscribers took nothing for `wait_s`; its `accepted` is how many messages were published.
        """
        begun, state = time.monotonic(), self.state
        with self._interrupts():
            while True:
                before, is_whole = state.messages, self._seek_ns is None
                self._round()
                if self._ended:
                    break
                if self._seek_ns is None:
                    state.rounds += 1
                    # Without messages there is nothing to wait for: the next round would begin at once, for ever.
                    if not self._loop or (is_whole and state.messages == before):
                        break
        return Summary(
            ended=self._ended or "end",
            messages=state.messages,
            bytes=state.bytes,
            seconds=time.monotonic() - begun,
            held_seconds=state.held_s,
            rounds=state.rounds,
            shift_ns=self._shift_ns,
            errors=self._publisher.errors(),
            lateness=self._publisher.lateness(),
        )

    @contextmanager
    def _interrupts(self) -> Iterator[None]:
        """Ctrl-C ends the replay between two calls into C, so that what was published is counted; a second one at once."""

        def end(*_: object) -> None:
            if self._ended:
                raise KeyboardInterrupt
            self._ended = "interrupt"

        is_main = threading.current_thread() is threading.main_thread()
        before = signal.signal(signal.SIGINT, end) if is_main else None
        try:
            yield
        finally:
            if is_main:
                signal.signal(signal.SIGINT, before)

    def _round(self) -> None:
        """From the start, or from where a seek goes, to the end, or to the next seek."""
        start_ns = self._sought_ns = self._seek_ns
        self._seek_ns = None
        self._is_anchored = False
        self._is_new_round = start_ns is None
        feed = _Feed(self._messages, start_ns, self._timed)
        try:
            while not self._obey():
                try:
                    messages = feed.take(SLICE_S)
                except queue.Empty:
                    continue
                if messages is None:
                    return
                self._publish(messages)
        finally:
            feed.close()

    def _timed(self, part: Part) -> Timed:
        """Called by the thread that reads ahead."""
        if self._is_new_round and self._shift_to_ns is not None:
            self._shift_ns = self._shift_to_ns() - int(part.times[0])
        self._is_new_round = False
        recordings, reserved, values = part.batch.columns[:3]
        recordings, reserved = recordings.to_numpy(), reserved.to_numpy()
        if self._shift is not None and self._shift_ns:
            values, reserved = self._shift(values, reserved, self._shift_ns)
        known, of_row = np.unique(recordings, return_inverse=True)
        targets = np.array([self._target(int(one)) for one in known], np.int32)[of_row]
        return Timed(values, reserved, part.times, targets)

    def _target(self, recording_id: int) -> int:
        if recording_id not in self._index_of:
            publication = self._publication_of(recording_id)
            if publication not in self._publications:
                self._publications.append(publication)
            self._index_of[recording_id] = self._publications.index(publication)
        return self._index_of[recording_id]

    def _publish(self, messages: Timed) -> None:
        done, state = 0, self.state
        if not self._is_anchored:
            self._anchor(int(messages.times[0]), now_ns() + _LEAD_NS)
            if self._sought_ns is None:
                self._sought_ns = int(messages.times[0])
        while done < messages.count:
            if self._obey():
                return
            count = messages.count - done
            if state.is_paused:
                if not self._steps:
                    time.sleep(SLICE_S / 2)
                    continue
                count = min(count, self._steps)
                self._publisher.plan(int(messages.times[done]), now_ns(), 0)
                self._stands_ns = max(self._stands_ns, int(messages.times[done + count - 1]))
            accepted = self._publisher.offer(messages, done, count, SLICE_S)
            if accepted:
                state.messages += accepted
                state.bytes += messages.bytes_between(done, done + accepted)
                done += accepted
                state.time_ns, self._sought_ns = int(messages.times[done - 1]), None
                self._steps = max(self._steps - accepted, 0)
            self._check_held(accepted, int(messages.times[done]) if done < messages.count else None)
            if self._on_progress is not None:
                self._on_progress(state)

    def _check_held(self, accepted: int, next_ns: int | None) -> None:
        """Count what subscribers hold back; a long wait moves the schedule."""
        blocked, now, state = self._publisher.blocked, time.monotonic(), self.state
        since = now if blocked is None else now - blocked[1]
        if blocked is None or accepted:
            held = self._end_wait(since)
            if held >= HELD_S and next_ns is not None and not state.is_paused:
                self._anchor(next_ns, now_ns())
        if blocked is None:
            return
        if self._held_since is None:
            self._held_since = since
        state.waits_for = "a subscriber" if blocked[0] == Outcome.NOT_CONNECTED else "slow subscribers"
        if 0 < self._wait_s <= now - self._held_since:
            failure = WaitTimeoutError(
                f"the replay waited {self._wait_s:g} s for {state.waits_for}; {state.messages:,} messages were published, the "
                f"last of time {state.time_ns} ns: start subscribers first, or let them wait longer by --timeout"
            )
            failure.accepted = state.messages
            raise failure

    def _end_wait(self, now: float) -> float:
        """Count how long subscribers have held the replay back, now that they do not."""
        held = 0.0 if self._held_since is None else now - self._held_since
        self.state.held_s += held
        self._held_since, self.state.waits_for = None, ""
        return held

    # -- the schedule and its commands -----------------------------------------------------------------------------------

    def _anchor(self, time_ns: int, at_ns: int) -> None:
        speed = self.state.speed
        self._publisher.plan(time_ns, at_ns, 0 if math.isinf(speed) else 1 / speed)
        self._is_anchored, self._stands_ns = True, time_ns

    def _now_due(self) -> int | None:
        """The time of the recordings that is due now."""
        if not self._is_anchored:
            return None
        if self._publisher.pace == 0:
            return self.state.time_ns
        return self._publisher.time_at(now_ns())

    def _obey(self) -> bool:
        """Do what was asked for; True if the round is over."""
        moves, self._moves = self._moves, []
        for command in (*moves, *self._commands()):
            self._do(command)
        return bool(self._ended) or self._seek_ns is not None

    def _do(self, command: Command) -> None:
        state, due = self.state, self._now_due()
        if command.kind == "quit":
            self._ended = "quit"
        elif command.kind == "seek":
            self._moves.clear()
            self._seek_ns = clamped_ns(int(command.value))
        elif command.kind == "move":
            places = (self._seek_ns, self._sought_ns, state.time_ns if self._is_anchored else None)
            base = next((one for one in places if one is not None), None)
            if base is None:
                self._moves.append(command)
            else:
                self._seek_ns = clamped_ns(base + int(command.value))
        elif command.kind == "step":
            self._pause(is_paused=True)
            self._steps += max(int(command.value), 1)
        elif command.kind in {"pause", "resume", "toggle"}:
            self._pause(is_paused=not state.is_paused if command.kind == "toggle" else command.kind == "pause")
        else:
            factor = {"faster": 2.0, "slower": 0.5}.get(command.kind)
            if factor is None:
                state.speed = checked_speed(command.value)
            elif not math.isinf(state.speed):
                state.speed = min(max(state.speed * factor, _MIN_SPEED), _MAX_SPEED)
            if due is not None and not state.is_paused:
                self._anchor(due, now_ns())

    def _pause(self, *, is_paused: bool) -> None:
        state, due = self.state, self._now_due()
        if is_paused == state.is_paused:
            return
        state.is_paused = is_paused
        self._end_wait(time.monotonic())  # a pause is nobody's wait
        if not is_paused:
            self._steps = 0
            if self._is_anchored:
                self._anchor(self._stands_ns, now_ns())
        elif due is not None:
            self._stands_ns = due


def checked_speed(speed: float) -> float:
    """The speed. UsageError: no replay has it."""
    if not (_MIN_SPEED <= speed <= _MAX_SPEED or speed == math.inf):
        raise UsageError(f"a speed of {speed} is not from {_MIN_SPEED:g} to {_MAX_SPEED:g}, nor max")
    return speed
