"""`aeron-spark top` shows on the directories of a stock driver and a stock archive what it shows on ours.

Method: our clients publish, read and record there; the facts and the screen are looked at.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from aeron_spark import Archive, Client
from aeron_spark.live.compare import facts
from aeron_spark.live.facts import Facts, Flow
from aeron_spark.live.reader import Reader
from tests.kit.subject import Subject
from tests.kit.terminal import Terminal
from tests.kit.wait import wait_until

pytestmark = pytest.mark.interop
IPC = "aeron:ipc?term-length=64k"


@pytest.mark.parametrize("kind", ["stock", "stock-c"])
def test_a_blocked_stream_and_its_recording(kind: str, aeron_dir: Path, archive_dir: Path) -> None:
    servers = Subject(kind=kind)
    with servers.driver(aeron_dir), servers.archive(aeron_dir, archive_dir), Client(aeron_dir, name="feed") as client:
        reader = Reader([aeron_dir], [archive_dir])
        last = reader.snapshot()

        def shown() -> Facts:
            nonlocal last
            before, last = last, reader.snapshot()
            return facts(last, before)

        with (
            Archive(aeron_dir=aeron_dir) as archive,
            client.add_publication(IPC, 1001) as publication,
            client.add_subscription(IPC, 1001) as subscription,
            subscription.wait_image(30),
        ):
            archive.start_recording(IPC, 1001)
            publication.wait_connected(30)
            while publication.offer(bytes(1000)) > 0:
                pass

            def ours() -> list[tuple[Flow, str]]:
                return [(one.flow, one.holder) for one in shown().streams if one.stream_id == 1001]

            # A client completes its name, in the label of its heartbeat, some time after the driver has made that.
            wait_until(lambda: "(feed)" in str(ours()), 30, "the client's name", state=ours)
            ((flow, holder),) = ours()
            assert flow == Flow.BLOCKED
            assert re.fullmatch(r"subscriber \d+ \(feed\)", holder)
            # Its begin is in the catalog, which is looked at every second.
            wait_until(
                lambda: [(one.state, one.length) for one in shown().recordings] == [("active", publication.position)],
                30,
                "all to be recorded",
                state=lambda: shown().recordings,
            )
            found = shown()
            (recording,) = found.recordings
            (stream,) = [one for one in found.streams if one.stream_id == 1001]
            assert recording.stream == stream.key
            assert [(one.kind, str(one.state)) for one in found.servers] == [("driver", "alive"), ("archive", "alive")]
            assert found.servers[1].sessions == 1
            command = [sys.executable, "-m", "aeron_spark.cli", "top", "--dir", aeron_dir, "--archive-dir", archive_dir]
            with Terminal(command, columns=120) as terminal:
                terminal.wait_text(holder)
                terminal.press("2")
                terminal.wait(lambda lines: any(re.match(r"> +\d+ active", line) for line in lines), "the recording")
                terminal.press("q")
                assert terminal.wait_end() == 0
