"""Three hosts on a switch: the victim's, an honest peer's, the attacker's; and the measurements of an attack.

On the victim's host run a driver, whose directory lies on a tmpfs of 1 GB, and an archive that wants logins, both with 1,024
descriptors. Honest streams come in, go out to one receiver and to dynamic destinations, and are recorded; somebody logs in
twice a second. `Measures` are taken undisturbed and under attack.

The attacked driver and archive run with real-time priority, so that other programs on the machine do not hold them up; what
their threads wait for a processor is no part of their cycles (cycles.py). Honest processes are as nice to themselves as plain
ones can be.
"""

from __future__ import annotations

import json
import os
import random
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aeron_spark import Client
from aeron_spark.archive.users import user_line
from aeron_spark.types import SourceLocation
from tests.attack import cycles, honest
from tests.attack.forge import Attacker
from tests.conformance.archive import folder
from tests.kit import dirs, hosts, native, small_disk
from tests.kit.cnc import Cnc
from tests.kit.hosts import Host
from tests.kit.processes import Process, archive_ready
from tests.kit.wait import wait_until

SHARED_MEMORY = 1 << 30
DESCRIPTORS = 1024
PASSWORD = "open sesame"  # noqa: S105 - of a test's user
RCV_HWM, REC_POS = 3, 100
# A login in progress when the time begins or ends.
LOGINS_UNSURE = 1
DRIVER = {
    "aeron.threading.mode": "DEDICATED",
    "aeron.ipc.term.buffer.length": "16m",
    "aeron.driver.timeout": "10000",
    "aeron.conductor.idle.strategy": "backoff",
}
# Of the attacked driver: it sends other drivers its name, and receives theirs.
RESOLVER = {
    "aeron.name.resolver.supplier": "driver",
    "aeron.driver.resolver.name": "victim",
    "aeron.driver.resolver.interface": f"{honest.NAMES[0]}:{honest.NAMES[1]}",
}
ARCHIVE = {
    "aeron.archive.control.channel.enabled": "true",
    "aeron.archive.control.channel": f"aeron:udp?endpoint={honest.CONTROL[0]}:{honest.CONTROL[1]}",
    "aeron.archive.replication.channel": f"aeron:udp?endpoint={honest.VICTIM}:0",
    "aeron.archive.segment.file.length": "128m",
    "aeron.archive.low.storage.space.threshold": "1m",
}
# Where the kernel groups processes by session, the group has a priority of its own, which counts more.
_NICE = '{ echo -20 > /proc/self/autogroup; } 2>/dev/null; exec nice -n -20 "$@"'
_DESCRIPTORS = f"ulimit -n {DESCRIPTORS}"
_REAL_TIME = 'chrt -f {0} true 2>/dev/null && exec chrt -f {0} "$@"'
NICE = ("sh", "-c", _NICE, "sh")
Mark = tuple[float, dict[str, float], tuple[int, int]]
SERVER_ROOM = ("sh", "-c", f"{_DESCRIPTORS}; {_REAL_TIME.format(1)}; {_NICE}", "sh")
WITNESS = ("sh", "-c", f"{_REAL_TIME.format(2)}; {_NICE}", "sh")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """What was seen in a time; rates per second, by thread the ms that its longest cycle worked."""

    seconds: float
    rates: dict[str, float]
    longest_cycles: dict[str, float]
    shared_memory: int
    descriptors: dict[str, int]
    driver_errors: int
    archive_errors: int
    sent_by_victim: int
    come_back: int
    recordings: int
    slowest_login_ms: int
    standstill_ms: int


@dataclass(slots=True, kw_only=True)
class World:
    """The processes, and their measurements."""

    hosts: list[Host]
    aeron_dir: Path
    friend_dir: Path
    archive_dir: Path
    driver: Process
    archive: Process
    friend_driver: Process
    attacker: Attacker
    witness: Process
    parts: dict[str, Process] = field(default_factory=dict)
    friend_client: Client | None = None

    @property
    def victim(self) -> Host:
        """The attacked host."""
        return self.hosts[0]

    @property
    def friend(self) -> Host:
        """The honest peer's host."""
        return self.hosts[1]

    @property
    def cnc(self) -> Cnc:
        """The directory of the attacked driver."""
        return Cnc(self.aeron_dir)

    def counts(self) -> dict[str, float]:
        """What honest clients have received so far, and when each of them reported it."""
        found: dict[str, float] = {}
        for name, part in self.parts.items():
            if part.returncode is not None:
                raise AssertionError(f"the honest {name} has ended\n{part.stderr()[-2000:]}")
            lines = part.stdout().splitlines()
            if lines and lines[-1].endswith("}"):
                found.update(json.loads(lines[-1]))
        found["recorded"] = self.recorded() / honest.FRAME
        return found

    def recorded(self) -> int:
        """Bytes recorded of the honest stream: it is the one with the smallest recording id."""
        positions = [one for one in self.cnc.counters() if one.type_id == REC_POS]
        return min(positions, key=lambda one: one.key[:8][::-1]).value if positions else 0

    def standstill_ms(self, since: float) -> int:
        """The longest time in which a stream brought nothing: what it catches up later is in its rate."""
        longest = 0.0
        for part in self.parts.values():
            moved: dict[str, tuple[float, float]] = {}
            for line in part.stdout().splitlines():
                told = json.loads(line) if line.endswith("}") else {}
                at = told.pop("at", 0.0)
                for name in told.keys() & {"in", "cast", "slow"} if at >= since else ():
                    last, count = moved.get(name, (at, told[name]))
                    longest = max(longest, at - last)
                    moved[name] = (at if told[name] != count else last, told[name])
        return int(longest * 1000)

    def longest_cycles(self, since: float) -> dict[str, float]:
        """By thread."""
        assert self.witness.returncode is None, self.witness.report()
        found: dict[str, float] = {}
        for line in self.witness.stdout().splitlines():
            seen = json.loads(line) if line.endswith("}") else {}
            if seen.get("at", 0.0) >= since:
                found[seen["thread"]] = max(seen["work_ms"], found.get(seen["thread"], 0.0))
        assert len(found) == len(cycles.DRIVER) + len(cycles.ARCHIVE), f"only {found} had cycles"
        return found

    def traffic(self) -> tuple[int, int]:
        """Bytes that have left the attacked host, and that came to the attacker's, where every forged address leads."""
        return self._link_bytes(self.victim, "tx"), self._link_bytes(self.attacker.host, "rx")

    @staticmethod
    def _link_bytes(host: Host, way: str) -> int:
        told = subprocess.run(
            ["ip", "-n", host.name, "-s", "-j", "link", "show", "eth"],  # noqa: S607
            capture_output=True,
            text=True,
            check=True,
        )
        return int(json.loads(told.stdout)[0]["stats64"][way]["bytes"])

    def shared_memory(self) -> int:
        """Bytes taken of the tmpfs."""
        state = os.statvfs(self.aeron_dir)
        return (state.f_blocks - state.f_bfree) * state.f_frsize

    def look(self, begin: Mark) -> Measures:
        """What has been since `begin`, which `mark` gave."""
        at, counts, (sent, come) = begin
        now, later = time.monotonic(), self.counts()
        sent_now, come_now = self.traffic()
        names = ("in", "recorded", "cast", "slow", "logins")
        return Measures(
            seconds=now - at,
            rates={name: (later.get(name, 0.0) - counts.get(name, 0.0)) / (now - at) for name in names},
            longest_cycles=self.longest_cycles(at),
            shared_memory=self.shared_memory(),
            descriptors={
                one.name.removeprefix("aeron-spark-"): sum(1 for _ in Path(f"/proc/{one.pid}/fd").iterdir())
                for one in (self.driver, self.archive)
                if one.returncode is None
            },
            driver_errors=len(self.cnc.errors()),
            archive_errors=len(folder.mark_errors(self.archive_dir)),
            sent_by_victim=sent_now - sent,
            come_back=come_now - come,
            recordings=len(list(self.archive_dir.glob("*.rec"))),
            slowest_login_ms=int(later.get("slowest_ms", 0)),
            standstill_ms=self.standstill_ms(at),
        )

    def mark(self) -> Mark:
        """Now."""
        return time.monotonic(), self.counts(), self.traffic()

    def check_alive(self) -> None:
        """Both servers run, and the driver's heart beats."""
        for server in (self.driver, self.archive):
            assert server.returncode is None, server.report()
        # Where the machine has just stood still, it beats again in a moment.
        wait_until(lambda: self.cnc.is_live(within_ms=2000), 10, "the driver's heart to beat")
        assert folder.mark_errors(self.archive_dir) is not None


def _archive(prefix: tuple[str, ...], settings: dict[str, str]) -> Process:
    name = "aeron-spark-archive"
    program = native.executable(name)
    named = (f"-D{key}={value}" for key, value in settings.items())
    return Process(name, [*prefix, *SERVER_ROOM, program, "--beside-driver", *named])


def image_sessions(aeron_dir: Path) -> set[int]:
    """Sessions of which a driver has images. A stream's counter has in its key a registration id, then the session id."""
    return {struct.unpack_from("<i", one.key, 8)[0] for one in Cnc(aeron_dir).counters() if one.type_id == RCV_HWM}


@contextmanager
def world(tmp_path: Path, rng: random.Random, settings: dict[str, str] | None = None) -> Iterator[World]:
    """All of it, at work: streams flow and a login has come through."""
    more = settings or {}
    with ExitStack() as stack:
        three = stack.enter_context(hosts.several(3))
        memory = stack.enter_context(small_disk.mounted(tmp_path / "memory", str(SHARED_MEMORY)))
        aeron_dir = memory / "aeron"
        friend_dir = stack.enter_context(dirs.fresh("friend"))
        archive_dir = stack.enter_context(dirs.fresh("archive"))
        users = tmp_path / "users"
        users.touch(0o600)
        users.write_text(user_line("honest", PASSWORD, ["all"]) + "\n")

        driver = stack.enter_context(
            native.driver(aeron_dir, {**DRIVER, **RESOLVER, **more}, prefix=(*three[0].prefix, *SERVER_ROOM))
        )
        archive = _archive(
            three[0].prefix,
            {
                **ARCHIVE,
                "aeron.dir": str(aeron_dir),
                "aeron.archive.dir": str(archive_dir),
                "aeron.spark.archive.credentials.file": str(users),
                **more,
            },
        )
        stack.enter_context(archive.wait_ready(archive_ready(archive, archive_dir)))
        friend_driver = stack.enter_context(native.driver(friend_dir, DRIVER, prefix=(*three[1].prefix, *NICE)))
        watch = [*WITNESS, sys.executable, "-m", "tests.attack.cycles", aeron_dir, str(driver.pid), str(archive.pid)]
        witness = Process("witness", watch, cwd=native.ROOT)
        stack.callback(witness.kill)
        attacker = Attacker(three[2], rng, lambda: image_sessions(aeron_dir))
        stack.callback(attacker.close)
        made = World(
            hosts=three,
            aeron_dir=aeron_dir,
            friend_dir=friend_dir,
            archive_dir=archive_dir,
            driver=driver,
            archive=archive,
            friend_driver=friend_driver,
            attacker=attacker,
            witness=witness,
        )
        made.friend_client = stack.enter_context(Client(friend_dir, timeout=30))
        with honest.log_in(made.friend_client, f"honest:{PASSWORD}".encode()) as session:
            session.start_recording(honest.CHANNELS[honest.RECORDED], honest.RECORDED, source=SourceLocation.REMOTE)
        for name, directory in (("friend", friend_dir), ("victim", aeron_dir), ("logins", friend_dir)):
            command = [*NICE, sys.executable, "-m", "tests.attack.honest", name, directory, f"honest:{PASSWORD}"]
            part = Process(f"honest-{name}", command, cwd=native.ROOT)
            stack.callback(part.kill)
            made.parts[name] = part

        def flows() -> bool:
            counts = made.counts()
            return all(counts.get(name, 0) > 0 for name in ("in", "recorded", "cast", "slow", "logins"))

        wait_until(flows, 30, "all honest streams and a login", state=made.counts)
        yield made
