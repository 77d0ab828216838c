"""How much shared memory a driver's directory takes at most for a number of streams: `aeron-spark doctor --for-streams`.

The formula of docs/operate.md, "Memory". Logs are counted in full: they take storage as they are written, and have all of it
after three terms.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aeron_spark.doctor_facts import DEFAULTS, read_settings, size
from aeron_spark.errors import UsageError

_TERMS_OF_A_LOG = 3
_METADATA_BYTES = 4096  # Spec: 02 §1
_CNC_HEADER_BYTES = 128  # Spec: 01 §2.1
# Values, and four times as much for keys and labels.
_COUNTERS_PARTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Something that takes shared memory: how many there are, and the bytes of each."""

    what: str
    count: int
    each_bytes: int

    @property
    def total_bytes(self) -> int:
        """Bytes of all of them."""
        return self.count * self.each_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a directory needs where all streams are of one kind."""

    kind: str
    parts: Sequence[Part]

    @property
    def total_bytes(self) -> int:
        """Bytes of all parts."""
        return sum(part.total_bytes for part in self.parts)

    @property
    def size(self) -> str:
        """The whole MiB that hold them, as Kubernetes, tmpfs and `--shm-size` take it."""
        return f"{-(-self.total_bytes >> 20)}"


def plans(
    streams: int,
    *,
    defines: Sequence[str] = (),
    files: Sequence[str] = (),
    environment: Mapping[str, str] = os.environ,
) -> list[Plan]:
    """The plans for `streams` over IPC, and over UDP in each direction, with an archive; settings as the servers take them."""
    if streams < 1:
        raise UsageError(f"--for-streams {streams}: at least one stream is needed")
    settings = read_settings(defines, files, environment)

    def length(name: str) -> int:
        return size(name, settings.get(name) or DEFAULTS[name])

    page = length("aeron.file.page.size")
    if page < 1:
        raise UsageError("aeron.file.page.size=0 is no length of a page")

    def paged(count: int) -> int:
        return -(-count // page) * page

    def log(term_setting: str) -> int:
        return paged(_TERMS_OF_A_LOG * length(term_setting) + _METADATA_BYTES)

    cnc = paged(
        _CNC_HEADER_BYTES
        + _COUNTERS_PARTS * length("aeron.counters.buffer.length")
        + sum(length(f"aeron.{name}.buffer.length") for name in ("conductor", "clients", "error"))
    )
    own = [
        Part(what="cnc.dat", count=1, each_bytes=cnc),
        Part(what="loss report", count=1, each_bytes=paged(length("aeron.loss.report.buffer.length"))),
        Part(
            what="free, below which the driver warns",
            count=1,
            each_bytes=length("aeron.low.file.store.warning.threshold"),
        ),
    ]
    replays = length("aeron.archive.max.concurrent.replays")
    control = Part(
        what="control sessions of the archive, one for each replay: requests, answers",
        count=2 * replays,
        each_bytes=log("aeron.archive.control.term.buffer.length"),
    )

    def plan(kind: str, term_setting: str, what: str, logs: int) -> Plan:
        replay = Part(what="replays of the archive", count=replays, each_bytes=log(term_setting))
        return Plan(
            kind=kind,
            parts=[*own, Part(what=what, count=logs, each_bytes=log(term_setting)), replay, control],
        )

    ipc, udp = "aeron.ipc.term.buffer.length", "aeron.term.buffer.length"
    return [
        plan("over IPC", ipc, "publications", streams),
        plan("over UDP, one end here", udp, "publications or images", streams),
        plan("over UDP, both ends here", udp, "publications and images", 2 * streams),
    ]
