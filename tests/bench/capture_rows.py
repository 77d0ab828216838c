"""The import of a capture beside a copy of its file: seconds, both from the page cache and into it, in one process."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from aeron_spark.captures import import_capture
from tests.bench.pairs import Row, measure
from tests.kit import dirs
from tests.kit.captures import INITIAL_TERM, RAW, START_NS, Packet, data_frame, setup_frame, udp, write_pcap

TERM_LENGTH = 16 << 20
#: Row, payload bytes, number of packets.
SHAPES = (("captures_aeron", 992, 250_000), ("captures_udp", 1024, 250_000), ("captures_udp_small", 100, 1_000_000))


def _packets(name: str, size: int, count: int) -> Iterator[Packet]:
    """Of a publication, whose frames fill terms without padding, or of datagrams."""
    body, frame = bytes(size), size + 32
    if name == "captures_aeron":
        yield START_NS, udp(setup_frame(term_length=TERM_LENGTH))
    for number in range(count):
        if name == "captures_aeron":
            term, offset = divmod(number * frame, TERM_LENGTH)
            datagram = data_frame(body, offset, term=INITIAL_TERM + term)
        else:
            datagram = body
        yield START_NS + 1000 * number, udp(datagram)


def _row(work: Path, name: str, size: int, count: int) -> Row:
    capture = write_pcap(work / "capture", _packets(name, size, count), link=RAW)
    kind = "aeron" if name == "captures_aeron" else "udp"

    def ours() -> float:
        folder = work / "imported"
        started = time.perf_counter()
        report = import_capture(capture, folder, captured=kind)
        seconds = time.perf_counter() - started
        shutil.rmtree(folder)
        if report.imported != count or report.problems:
            raise RuntimeError(f"{report.imported} of {count} packets were imported: {report.problems}")
        return seconds

    def copy() -> float:
        started = time.perf_counter()
        shutil.copyfile(capture, work / "copy")
        seconds = time.perf_counter() - started
        (work / "copy").unlink()
        return seconds

    what = {"packets": count, "payload bytes": size, "capture bytes": capture.stat().st_size, "as": kind}
    return measure(
        name,
        "s",
        ours,
        copy,
        peer_name="copying the capture",
        target=0.3,
        higher_is_better=False,
        ours_config=what,
        peer_config=what,
    )


def run() -> list[Row]:
    """The rows of group `captures`."""
    with dirs.fresh("captures") as work:
        return [_row(work, *shape) for shape in SHAPES]
