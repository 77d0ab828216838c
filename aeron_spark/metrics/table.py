"""Every metric that this package exports: name, kind, labels and meaning. docs/metrics.md is made of this table.

A name follows from the type of a counter, never from its label's text. The first label is where the figures are from: `dir` is
the directory that was read, of a driver or of an archive. Byte positions are counters: they only grow while a stream lives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a value does; a counter's samples end in `_total`."""

    COUNTER = "counter"
    GAUGE = "gauge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One metric. `name` is without the `_total` of a counter's samples."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    help: str

    @property
    def sample(self) -> str:
        """The name that a query uses."""
        return f"{self.name}_total" if self.kind == Kind.COUNTER else self.name


def _families() -> dict[str, Family]:
    found: dict[str, Family] = {}

    def add(kind: Kind, labels: str, rows: Mapping[str, str]) -> None:
        for name, meaning in rows.items():
            found[name] = Family(name=name, kind=kind, labels=tuple(labels.split()), help=meaning)

    add(Kind.GAUGE, "dir kind", {
        "aeron_up": "1: a live driver or archive (kind) has the directory and its files are readable, else 0",
        "aeron_series_left_out": "Series of the directory that are not exported: too many, not told apart, or impossible",
    })  # fmt: skip
    add(Kind.GAUGE, "dir", {
        "aeron_driver_start_time_seconds": "When the driver started, in seconds since 1970",
        "aeron_driver_heartbeat_age_seconds": "Since the driver's conductor last showed that it works",
        "aeron_driver_free_shared_memory_bytes": "Space left for log buffers in the directory's file system",
        "aeron_driver_shared_memory_bytes": "Size of the directory's file system",
        "aeron_driver_mapped_bytes": "Bytes of files that the driver has mapped",
        "aeron_driver_max_resolution_seconds": "Longest resolution of a name since the start",
    })  # fmt: skip
    add(Kind.GAUGE, "dir version", {
        "aeron_driver_version_info": "1, with the version of Aeron that the driver is compatible with",
    })  # fmt: skip
    add(Kind.COUNTER, "dir", {
        "aeron_driver_sent_bytes": "Bytes sent to the network",
        "aeron_driver_received_bytes": "Bytes received from the network",
        "aeron_driver_naks_sent": "NAKs sent: gaps that were asked for",
        "aeron_driver_naks_received": "NAKs received",
        "aeron_driver_status_messages_sent": "Status messages sent",
        "aeron_driver_status_messages_received": "Status messages received",
        "aeron_driver_status_messages_rejected": "Status messages rejected",
        "aeron_driver_heartbeats_sent": "Heartbeats sent",
        "aeron_driver_heartbeats_received": "Heartbeats received",
        "aeron_driver_retransmits_sent": "Retransmissions sent",
        "aeron_driver_retransmitted_bytes": "Bytes sent again",
        "aeron_driver_retransmit_overflows": "NAKs dropped because all retransmit actions were in use",
        "aeron_driver_flow_control_under_runs": "Packets that arrived below the window of their stream",
        "aeron_driver_flow_control_over_runs": "Packets that arrived above the window of their stream",
        "aeron_driver_invalid_packets": "Packets dropped because they are not valid",
        "aeron_driver_errors": "Errors, each time it happened",
        "aeron_driver_short_sends": "Datagrams that the system did not send whole",
        "aeron_driver_failed_log_buffer_frees": "Log buffers that could not be freed yet",
        "aeron_driver_back_pressure_events": "Times that a sender stopped at the limit of flow control",
        "aeron_driver_unblocked_publications": "Claims of dead publishers that the driver filled",
        "aeron_driver_unblocked_commands": "Commands of dead clients that the driver skipped",
        "aeron_driver_ttl_asymmetries": "Setups whose time-to-live is not that of the channel",
        "aeron_driver_loss_gap_fills": "Gaps of unreliable streams that were filled, not asked for",
        "aeron_driver_client_timeouts": "Clients that died without closing",
        "aeron_driver_resolution_changes": "Names that now resolve to another address",
        "aeron_driver_slow_resolutions": "Name resolutions above their threshold",
        "aeron_driver_error_frames_sent": "Error frames sent",
        "aeron_driver_error_frames_received": "Error frames received",
        "aeron_driver_publications_revoked": "Publications revoked",
        "aeron_driver_images_revoked": "Images of revoked publications",
        "aeron_driver_images_rejected": "Images rejected by a subscriber",
    })  # fmt: skip
    add(Kind.COUNTER, "dir queue", {
        "aeron_driver_failed_offers": "Commands that did not fit into an agent's queue",
    })  # fmt: skip
    add(Kind.GAUGE, "dir agent", {
        "aeron_driver_max_cycle_seconds": "Longest duty cycle of an agent since the start",
    })  # fmt: skip
    add(Kind.COUNTER, "dir agent", {
        "aeron_driver_slow_cycles": "Duty cycles of an agent above their threshold: stalls",
    })  # fmt: skip
    add(Kind.COUNTER, "dir code", {
        "aeron_driver_logged_errors": "Observations in the driver's distinct error log, by error code",
    })  # fmt: skip
    stream = "dir stream_id session_id channel registration_id"
    add(Kind.COUNTER, stream, {
        "aeron_publisher_position_bytes": "Where the publisher is",
        "aeron_sender_position_bytes": "What was sent",
        "aeron_sender_back_pressure_events": "Times that this publication's sender stopped at its limit",
        "aeron_sender_naks_received": "NAKs received for this publication",
        "aeron_receiver_high_water_bytes": "Highest position that was received, gaps before it included",
        "aeron_receiver_position_bytes": "What was received without a gap",
        "aeron_receiver_naks_sent": "NAKs sent for this image",
        "aeron_subscriber_position_bytes": "What the subscriber has read",
    })  # fmt: skip
    add(Kind.GAUGE, stream, {
        "aeron_publisher_limit_bytes": "How far the publisher may go",
        "aeron_sender_limit_bytes": "How far the sender may go by flow control",
        "aeron_sender_receivers": "Receivers that flow control waits for",
        "aeron_sender_behind_bytes": "Published and not sent yet",
        "aeron_receiver_behind_bytes": "Received beyond a gap",
        "aeron_subscriber_behind_bytes": "Received, or published on this machine, and not read yet",
        "aeron_publisher_window_bytes": "How far the publisher may still go; 0: back-pressure",
        "aeron_sender_window_bytes": "How far the sender may still go; 0: its receivers hold it back",
    })  # fmt: skip
    add(Kind.COUNTER, "dir stream_id session_id channel source", {
        "aeron_image_lost_bytes": "Bytes in the gaps of an image, by the loss report; most came again",
        "aeron_image_gaps": "Gaps of an image, by the loss report",
    })  # fmt: skip
    add(Kind.GAUGE, "dir direction channel registration_id", {
        "aeron_channel_status": "Endpoint of a channel: 1 active, 0 starting, 2 closing, -1 failed",
    })  # fmt: skip
    add(Kind.GAUGE, "dir channel registration_id", {
        "aeron_channel_destinations": "Destinations of a publication with several",
    })  # fmt: skip
    add(Kind.GAUGE, "dir client_id name", {
        "aeron_client_heartbeat_age_seconds": "Since a client last showed that it works",
    })  # fmt: skip
    add(Kind.GAUGE, "dir type_id counter_id registration_id label", {
        "aeron_counter_value": "Counters of other types: of applications, clusters, persistent subscriptions",
    })  # fmt: skip
    recording = "dir archive_id recording_id stream_id session_id channel"
    add(Kind.COUNTER, recording, {
        "aeron_recording_position_bytes": "What was recorded, of an active recording",
    })  # fmt: skip
    add(Kind.GAUGE, recording, {
        "aeron_recording_behind_bytes": "Published, or received from elsewhere, and not recorded yet",
    })  # fmt: skip
    add(Kind.COUNTER, "dir archive_id", {
        "aeron_archive_errors": "Errors of the archive, each time it happened",
        "aeron_archive_written_bytes": "Bytes recorded",
        "aeron_archive_write_seconds": "Time spent on writing",
        "aeron_archive_read_bytes": "Bytes replayed",
        "aeron_archive_read_seconds": "Time spent on reading for replays",
    })  # fmt: skip
    add(Kind.GAUGE, "dir archive_id", {
        "aeron_archive_control_sessions": "Clients that are connected to the archive",
        "aeron_archive_recording_sessions": "Active recordings",
        "aeron_archive_replay_sessions": "Active replays",
        "aeron_archive_max_write_seconds": "Longest write since the start",
        "aeron_archive_max_read_seconds": "Longest read since the start",
    })  # fmt: skip
    add(Kind.GAUGE, "dir archive_id agent", {
        "aeron_archive_max_cycle_seconds": "Longest duty cycle of an agent of the archive since the start",
    })  # fmt: skip
    add(Kind.COUNTER, "dir archive_id agent", {
        "aeron_archive_slow_cycles": "Duty cycles of an agent of the archive above their threshold: stalls",
    })  # fmt: skip
    add(Kind.GAUGE, "dir", {
        "aeron_archive_start_time_seconds": "When the archive of the folder started, in seconds since 1970",
        "aeron_archive_heartbeat_age_seconds": "Since the archive of the folder last showed that it works",
        "aeron_archive_segment_files": "Segment files in the folder",
        "aeron_archive_disk_bytes": "Storage that the files in the folder take",
        "aeron_archive_free_bytes": "Space left in the folder's file system",
        "aeron_archive_file_system_bytes": "Size of the folder's file system",
        "aeron_archive_full_seconds": "Until the file system is full, by its last ten minutes; absent while nothing is used up",
    })  # fmt: skip
    add(Kind.GAUGE, "dir state", {
        "aeron_archive_recordings": "Recordings in the catalog: active, unfinished (their archive is dead), stopped, invalid",
    })  # fmt: skip
    add(Kind.COUNTER, "dir code", {
        "aeron_archive_logged_errors": "Observations in the archive's distinct error log, by error code",
    })  # fmt: skip
    query = "query query_id"
    add(Kind.COUNTER, query, {
        "aeron_spark_batches": "Micro-batches that ended",
        "aeron_spark_rows": "Rows that micro-batches took",
        "aeron_spark_batch_seconds": "Time that micro-batches took",
        "aeron_spark_committed_entries": "Entries of the query in the ledger: batches that count",
    })  # fmt: skip
    add(Kind.GAUGE, query, {
        "aeron_spark_query_active": "1 while the query runs, 0 after its end",
        "aeron_spark_last_batch_seconds": "Time that the last micro-batch took",
        "aeron_spark_last_batch_time_seconds": "When the last micro-batch ended, in seconds since 1970",
        "aeron_spark_lag_seconds": "Between the writes of the first byte that the query has not read and of the last one",
    })  # fmt: skip
    add(Kind.GAUGE, "query query_id recording_id", {
        "aeron_spark_lag_bytes": "Recorded and not read by the query yet",
    })  # fmt: skip
    return found


#: By name, in the order of the page and of a scrape.
TABLE: Mapping[str, Family] = _families()


def markdown() -> str:
    """The table of docs/metrics.md."""
    lines = ["| metric | kind | labels | meaning |", "|---|---|---|---|"]
    lines += [
        f"| `{one.sample}` | {one.kind} | {', '.join(f'`{label}`' for label in one.labels)} | {one.help} |"
        for one in TABLE.values()
    ]
    return "\n".join(lines) + "\n"
