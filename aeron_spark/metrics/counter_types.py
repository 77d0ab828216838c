"""What a counter is exported as, by its type, key and label. Both come from other processes: what is wrong in them says less.

Spec: 01 §6-7.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aeron_spark.counters import CounterRow
from aeron_spark.metrics.samples import Labels, cut
from aeron_spark.streams import StreamCounter, stream_row
from aeron_spark.types import CounterId, RegistrationId

_NS = 1e9
RECORDING_POSITION = 100
_SYSTEM, _CLIENT_HEARTBEAT = 0, 11
_VERSION = 34
# Name, second label if there is one, and divisor, by system id; not idle strategy (22) and protocol version (43). Spec: 01 §6.
_SYSTEM_COUNTERS: Mapping[int, tuple[str, str, float]] = {
    0: ("sent_bytes", "", 1),
    1: ("received_bytes", "", 1),
    2: ("failed_offers", "receiver", 1),
    3: ("failed_offers", "sender", 1),
    4: ("failed_offers", "conductor", 1),
    5: ("naks_sent", "", 1),
    6: ("naks_received", "", 1),
    7: ("status_messages_sent", "", 1),
    8: ("status_messages_received", "", 1),
    9: ("heartbeats_sent", "", 1),
    10: ("heartbeats_received", "", 1),
    11: ("retransmits_sent", "", 1),
    12: ("flow_control_under_runs", "", 1),
    13: ("flow_control_over_runs", "", 1),
    14: ("invalid_packets", "", 1),
    15: ("errors", "", 1),
    16: ("short_sends", "", 1),
    17: ("failed_log_buffer_frees", "", 1),
    18: ("back_pressure_events", "", 1),
    19: ("unblocked_publications", "", 1),
    20: ("unblocked_commands", "", 1),
    21: ("ttl_asymmetries", "", 1),
    23: ("loss_gap_fills", "", 1),
    24: ("client_timeouts", "", 1),
    25: ("resolution_changes", "", 1),
    26: ("max_cycle_seconds", "conductor", _NS),
    27: ("slow_cycles", "conductor", 1),
    28: ("max_cycle_seconds", "sender", _NS),
    29: ("slow_cycles", "sender", 1),
    30: ("max_cycle_seconds", "receiver", _NS),
    31: ("slow_cycles", "receiver", 1),
    32: ("max_resolution_seconds", "", _NS),
    33: ("slow_resolutions", "", 1),
    35: ("mapped_bytes", "", 1),
    36: ("retransmitted_bytes", "", 1),
    37: ("retransmit_overflows", "", 1),
    38: ("error_frames_received", "", 1),
    39: ("error_frames_sent", "", 1),
    40: ("publications_revoked", "", 1),
    41: ("images_revoked", "", 1),
    42: ("images_rejected", "", 1),
    44: ("status_messages_rejected", "", 1),
    45: ("failed_offers", "native-resource-agent", 1),
}
STREAMS: Mapping[int, str] = {
    StreamCounter.PUBLISHER_LIMIT: "aeron_publisher_limit_bytes",
    StreamCounter.SENDER_POSITION: "aeron_sender_position_bytes",
    StreamCounter.RECEIVER_HIGH_WATER_MARK: "aeron_receiver_high_water_bytes",
    StreamCounter.SUBSCRIBER_POSITION: "aeron_subscriber_position_bytes",
    StreamCounter.RECEIVER_POSITION: "aeron_receiver_position_bytes",
    StreamCounter.SENDER_LIMIT: "aeron_sender_limit_bytes",
    StreamCounter.PUBLISHER_POSITION: "aeron_publisher_position_bytes",
    StreamCounter.SENDER_BACK_PRESSURE: "aeron_sender_back_pressure_events",
    StreamCounter.SENDER_NAKS_RECEIVED: "aeron_sender_naks_received",
    StreamCounter.RECEIVER_NAKS_SENT: "aeron_receiver_naks_sent",
    17: "aeron_sender_receivers",
}
_CHANNELS: Mapping[int, str] = {6: "send", 7: "receive"}
_DESTINATIONS = 18
# Of an archive: name, and how many of the counter's unit the metric's has. Spec: 01 §7.3.
_ARCHIVE: Mapping[int, tuple[str, float]] = {
    101: ("aeron_archive_errors", 1), 102: ("aeron_archive_control_sessions", 1),
    105: ("aeron_archive_max_write_seconds", _NS), 106: ("aeron_archive_written_bytes", 1),
    107: ("aeron_archive_write_seconds", _NS), 108: ("aeron_archive_max_read_seconds", _NS),
    109: ("aeron_archive_read_bytes", 1), 110: ("aeron_archive_read_seconds", _NS),
    111: ("aeron_archive_recording_sessions", 1), 112: ("aeron_archive_replay_sessions", 1),
}  # fmt: skip
_ARCHIVE_AGENTS: Mapping[int, tuple[str, float]] = {
    103: ("aeron_archive_max_cycle_seconds", _NS),
    104: ("aeron_archive_slow_cycles", 1),
}
# Known, and exported as part of others: the addresses of channels, state of one image's congestion control, names that are
# resolved, one counter for each control session.
_TOLD_ELSEWHERE = frozenset({10, 14, 15, 16, 21, 113})
#: Types in the order in which they are kept where counters are too many; all others come last.
_RANKS = (
    [_SYSTEM, _CLIENT_HEARTBEAT, RECORDING_POSITION, *_ARCHIVE, *_ARCHIVE_AGENTS],
    list(STREAMS),
    [*_CHANNELS, _DESTINATIONS],
)
RANK_OF_STREAMS = 1
RANK_OF_OTHERS = len(_RANKS)
_AGENT = re.compile(r"archive-(conductor|recorder|replayer) ")
_CLIENT_NAME = re.compile(r" name=(.*?) version=")
_I32, _I64 = struct.Struct("<i"), struct.Struct("<q")
_RECORDING = struct.Struct("<qii")
_RECORDING_LABEL = re.compile(r"rec-pos: -?\d+ -?\d+ (-?\d+) (.*?)(?: - archiveId=-?\d+)?\Z", re.DOTALL)

#: id, type, value, registration id, reference id, key, label, owner id.
Fields = tuple[int, int, int, int, int, bytes, bytes, int]


def ranks(type_ids: NDArray[np.int32]) -> NDArray[np.int64]:
    """How much counters matter, 0 first; beyond `RANK_OF_OTHERS` those that say nothing of their own."""
    known = [np.isin(type_ids, types) for types in (*_RANKS, list(_TOLD_ELSEWHERE))]
    return np.select(known, [*range(len(_RANKS)), RANK_OF_OTHERS + 1], RANK_OF_OTHERS)


class Series(NamedTuple):
    """What a counter is exported as. A tuple, as the first scrape makes one for each counter."""

    name: str
    labels: Labels
    divisor: float = 1
    #: The value is a time in ms: what is exported is how long ago it was, in seconds.
    is_heartbeat: bool = False
    #: Stream and session of a position.
    stream: tuple[int, int] | None = None
    #: Registration id of the publication, image or subscription that a stream's counter belongs to.
    party_id: int = 0


class _Stream(NamedTuple):
    labels: Labels
    stream: tuple[int, int]
    party_id: int


class CounterTypes:
    """The counters of one directory."""

    def __init__(self, directory: str) -> None:
        self._dir = directory
        self._streams: dict[bytes, _Stream] = {}
        self._by_type: Mapping[int, Callable[[Fields], Series | None]] = {
            _SYSTEM: self._system,
            **dict.fromkeys(STREAMS, self._of_stream),
            **dict.fromkeys(_CHANNELS, self._channel),
            _DESTINATIONS: self._destinations,
            _CLIENT_HEARTBEAT: self._client,
            RECORDING_POSITION: self._recording,
            **dict.fromkeys(_ARCHIVE, self._archive),
            **dict.fromkeys(_ARCHIVE_AGENTS, self._archive_agent),
            **dict.fromkeys(_TOLD_ELSEWHERE, lambda _: None),
        }

    def series(self, fields: Fields) -> Series | None:
        """What to export a counter as; None: nothing."""
        return self._by_type.get(fields[1], self._other)(fields)

    def forget(self) -> None:
        """Drop what counters had in common."""
        self._streams = {}

    def _system(self, fields: Fields) -> Series | None:
        value, system_id = fields[2], _I32.unpack_from(fields[5])[0]
        if system_id == _VERSION:
            version = ".".join(str(value >> shift & 0xFF) for shift in (16, 8, 0))
            # The value is the version: divided by itself it is 1.
            return Series("aeron_driver_version_info", (self._dir, version), value or 1)
        if system_id not in _SYSTEM_COUNTERS:
            return None
        name, label, divisor = _SYSTEM_COUNTERS[system_id]
        return Series(f"aeron_driver_{name}", (self._dir, label) if label else (self._dir,), divisor)

    def _of_stream(self, fields: Fields) -> Series:
        """All counters of a publication or image have the same key."""
        key = fields[5]
        found = self._streams.get(key)
        if found is None:
            row = stream_row(
                CounterRow(
                    counter_id=CounterId(fields[0]),
                    type_id=fields[1],
                    value=fields[2],
                    registration_id=RegistrationId(fields[3]),
                    owner_id=fields[7],
                    reference_id=fields[4],
                    key=key,
                    label=fields[6].decode("utf-8", "replace"),
                )
            )
            labels = (str(row.stream_id), str(row.session_id), cut(row.channel), str(row.registration_id))
            found = _Stream((self._dir, *labels), (row.stream_id, row.session_id), row.registration_id)
            self._streams[key] = found
        return Series(STREAMS[fields[1]], found.labels, stream=found.stream, party_id=found.party_id)

    def _channel(self, fields: Fields) -> Series:
        labels = (self._dir, _CHANNELS[fields[1]], _channel_of(fields[5]), str(fields[3]))
        return Series("aeron_channel_status", labels)

    def _destinations(self, fields: Fields) -> Series:
        return Series("aeron_channel_destinations", (self._dir, _channel_of(fields[5]), str(fields[3])))

    def _client(self, fields: Fields) -> Series:
        name = _CLIENT_NAME.search(fields[6].decode("utf-8", "replace"))
        labels = (self._dir, str(_I64.unpack_from(fields[5])[0]), cut(name[1]) if name else "")
        return Series("aeron_client_heartbeat_age_seconds", labels, is_heartbeat=True)

    def _recording(self, fields: Fields) -> Series:
        key = fields[5]
        recording_id, session_id, source_length = _RECORDING.unpack_from(key)
        at = _RECORDING.size + source_length
        has_archive = source_length >= 0 and at + _I64.size <= len(key)
        archive_id = str(_I64.unpack_from(key, at)[0]) if has_archive else ""
        told = _RECORDING_LABEL.match(fields[6].decode("utf-8", "replace"))
        stream_id, channel = (told[1], cut(told[2])) if told else ("", "")
        labels = (self._dir, archive_id, str(recording_id), stream_id, str(session_id), channel)
        stream = (int(stream_id), session_id) if told else None
        return Series("aeron_recording_position_bytes", labels, stream=stream)

    def _archive(self, fields: Fields) -> Series:
        name, divisor = _ARCHIVE[fields[1]]
        return Series(name, (self._dir, str(_I64.unpack_from(fields[5])[0])), divisor)

    def _archive_agent(self, fields: Fields) -> Series:
        name, divisor = _ARCHIVE_AGENTS[fields[1]]
        agent = _AGENT.match(fields[6].decode("utf-8", "replace"))
        labels = (self._dir, str(_I64.unpack_from(fields[5])[0]), agent[1] if agent else "")
        return Series(name, labels, divisor)

    def _other(self, fields: Fields) -> Series:
        text = cut(fields[6].decode("utf-8", "replace"))
        return Series("aeron_counter_value", (self._dir, str(fields[1]), str(fields[0]), str(fields[3]), text))


def _channel_of(key: bytes) -> str:
    return cut(key[4 : 4 + max(0, _I32.unpack_from(key)[0])].decode("ascii", "replace"))
