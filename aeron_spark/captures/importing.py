"""Imports a capture into an archive's folder.

    capture file > batches of packets > a sink > recordings

Aeron's streams become what an archive would have recorded: frames at their positions (`aeron.py`). Payloads of other protocols
become messages (`messages.py`). A gap ends a recording, and another begins behind it, as when an archive loses a stream that
comes back: a recording has only bytes that were captured.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from aeron_spark.captures import files, ordering
from aeron_spark.captures.aeron import AeronSink
from aeron_spark.captures.fragments import PIECE
from aeron_spark.captures.messages import TcpSink, UdpSink
from aeron_spark.captures.packets import among, chosen
from aeron_spark.captures.report import Gap, Imported, Log
from aeron_spark.captures.writing import Import
from aeron_spark.errors import UsageError
from aeron_spark.sbe.framing import named

__all__ = ["CAPTURED", "Gap", "Imported", "Report", "import_capture"]

CAPTURED = ("aeron", "udp", "tcp")
DEFAULT_SEGMENT_LENGTH = 128 << 20
#: Of terms and segments.
_MIN_LENGTH, _MAX_LENGTH = 64 << 10, 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What came of an import.

    Counts are packets, but for `imported` (datagrams of Aeron, or messages) and `repeated` (datagrams or segments that were
    there already).
    """

    packets: int
    imported: int
    repeated: int
    other: int
    cut: int
    malformed: int
    incomplete_fragments: int
    recordings: list[Imported]
    gap_count: int
    gaps: list[Gap] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def import_capture(
    capture: str | Path,
    folder: str | Path,
    *,
    captured: str = "aeron",
    ports: Collection[int] | None = None,
    framing: str = "none",
    term_length: int | None = None,
    initial_term_id: int | None = None,
    segment_length: int = DEFAULT_SEGMENT_LENGTH,
    on_progress: Callable[[int, int], object] | None = None,
) -> Report:
    """Write the streams of a capture to recordings of an archive's folder, which is made if it is absent.

    Args:
        capture: A pcap or pcapng file, also compressed by gzip or zstd.
        folder: No archive may run on it.
        captured: `aeron`, `udp` (a message a datagram, or several by `framing`) or `tcp` (messages by `framing`).
        ports: UDP or TCP ports of the target; default: all.
        framing: As of `aeron_spark.sbe`, without `messages`.
        term_length: With `initial_term_id`, of Aeron streams whose setup frame is not in the capture.
        initial_term_id: See `term_length`; also without sign, as Wireshark shows it.
        segment_length: Of the recordings' files; at least a term.
        on_progress: Called with bytes of the file and packets that are read.

    Raises:
        UsageError: No capture file, an impossible choice, or a folder in use.
        StorageError: A file can't be read or written.

    What is wrong in the capture raises nothing: it is in the report.
    """
    sink = _sink(captured, framing, term_length, initial_term_id, segment_length)
    counts = dict.fromkeys(range(PIECE + 1), 0)
    wanted = files.TCP if captured == "tcp" else files.UDP
    packets = others = 0
    with files.CaptureFile(capture) as source:
        batches = source.batches(wanted)
        first = next(batches, None)  # before anything is made for what is no capture
        with Import(folder) as target:
            log = Log()
            sink.open(source, target, log)
            batch = first
            while batch is not None:
                packets += len(batch)
                for kind in counts:
                    counts[kind] += int((batch.kind == kind).sum())
                taken = batch.take(chosen(batch.kind == wanted))
                if ports:
                    flows = {flow for flow in set(taken.flow.tolist()) if source.flow(flow).target_port in ports}
                    taken = taken.take(among(taken.flow, flows))
                if len(taken):
                    others += len(taken) - sink.add(taken)
                if on_progress:
                    on_progress(source.bytes_read, packets)
                batch = next(batches, None)
            sink.finish()
        for text in source.problems:
            log.problem(text)
        if counts[files.CUT]:
            log.problem(
                f"the capture holds only a part of {counts[files.CUT]:,} packets, which are left out: capture whole packets "
                "(tcpdump -s 0)"
            )
        unread = sum(counts[kind] for kind in counts if kind not in (wanted, PIECE, files.CUT, files.MALFORMED))
        return Report(
            packets=packets, imported=log.imported, repeated=log.repeated, other=unread + others, cut=counts[files.CUT],
            malformed=counts[files.MALFORMED], incomplete_fragments=source.incomplete_fragments,
            recordings=log.recordings, gap_count=log.gap_count, gaps=log.gaps, problems=log.problems,
        )  # fmt: skip


def _sink(
    captured: str, framing: str, term_length: int | None, initial_term_id: int | None, segment_length: int
) -> AeronSink | UdpSink | TcpSink:
    if segment_length & (segment_length - 1) or not _MIN_LENGTH <= segment_length <= _MAX_LENGTH:
        raise UsageError(f"segment length {segment_length} is no power of two from {_MIN_LENGTH} to {_MAX_LENGTH}")
    how, budget = named(framing), ordering.Budget(ordering.BUDGET)
    if how.size == "walk":
        raise UsageError("framing 'messages' needs a schema; import with 'none', and decode with it when you read")
    if captured == "aeron":
        if how.size:
            raise UsageError("a framing is of captured UDP or TCP: Aeron's frames have their own")
        if (term_length is None) != (initial_term_id is None):
            raise UsageError("give the term length and the initial term id together, or none of them")
        if term_length is not None and (
            term_length & (term_length - 1) or not _MIN_LENGTH <= term_length <= _MAX_LENGTH
        ):
            raise UsageError(f"term length {term_length} is no power of two from 64 KiB to 1 GiB")
        return AeronSink(term_length, _signed(initial_term_id), segment_length, budget)
    if term_length is not None or initial_term_id is not None:
        raise UsageError("term length and initial term id are of captured Aeron streams")
    if captured == "udp":
        return UdpSink(how, segment_length, budget)
    if captured == "tcp":
        return TcpSink(how, segment_length, budget)
    raise UsageError(f"captured='{captured}' is not one of {', '.join(CAPTURED)}")


def _signed(term_id: int | None) -> int | None:
    """A term id of 32 bits, which may be given without its sign."""
    if term_id is None:
        return None
    if not -(2**31) <= term_id < 2**32:
        raise UsageError(f"initial term id {term_id} has more than 32 bits")
    return (term_id + 2**31) % 2**32 - 2**31
