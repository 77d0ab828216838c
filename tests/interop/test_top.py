"""`aeron-spark top` and `ui` show on the directories of a stock driver and a stock archive what they show on ours.

Method: our clients publish, read and record there; the facts, the screen and the page's answers are looked at.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from aeron_spark import Archive, Client
from aeron_spark.live.compare import facts
from aeron_spark.live.facts import Facts, Flow
from aeron_spark.live.reader import Reader
from tests.kit.ports import free_port
from tests.kit.processes import Process
from tests.kit.subject import Subject
from tests.kit.terminal import Terminal
from tests.kit.wait import wait_until

pytestmark = pytest.mark.interop
IPC = "aeron:ipc?term-length=64k"
KINDS = pytest.mark.parametrize("kind", ["stock", "stock-c"])


@contextmanager
def blocked(kind: str, aeron_dir: Path, archive_dir: Path) -> Iterator[int]:
    """A stream of a client, "feed", that is recorded, and blocked by a subscriber that reads nothing; its position."""
    servers = Subject(kind=kind)
    with (
        servers.driver(aeron_dir),
        servers.archive(aeron_dir, archive_dir),
        Client(aeron_dir, name="feed") as client,
        Archive(aeron_dir=aeron_dir) as archive,
        client.add_publication(IPC, 1001) as publication,
        client.add_subscription(IPC, 1001) as subscription,
        subscription.wait_image(30),
    ):
        archive.start_recording(IPC, 1001)
        publication.wait_connected(30)
        while publication.offer(bytes(1000)) > 0:
            pass
        yield int(publication.position)


def command(verb: str, aeron_dir: Path, archive_dir: Path, *more: str) -> list[str | Path]:
    return [sys.executable, "-m", "aeron_spark.cli", verb, "--dir", aeron_dir, "--archive-dir", archive_dir, *more]


@KINDS
def test_a_blocked_stream_and_its_recording(kind: str, aeron_dir: Path, archive_dir: Path) -> None:
    with blocked(kind, aeron_dir, archive_dir) as position:
        reader = Reader([aeron_dir], [archive_dir])
        last = reader.snapshot()

        def shown() -> Facts:
            nonlocal last
            before, last = last, reader.snapshot()
            return facts(last, before)

        def ours() -> list[tuple[Flow, str]]:
            return [(one.flow, one.holder) for one in shown().streams if one.stream_id == 1001]

        # A client completes its name, in the label of its heartbeat, some time after the driver has made that.
        wait_until(lambda: "(feed)" in str(ours()), 30, "the client's name", state=ours)
        ((flow, holder),) = ours()
        assert flow == Flow.BLOCKED
        assert re.fullmatch(r"subscriber \d+ \(feed\)", holder)
        # Its begin is in the catalog, which is looked at every second.
        wait_until(
            lambda: [(one.state, one.length) for one in shown().recordings] == [("active", position)],
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
        with Terminal(command("top", aeron_dir, archive_dir), columns=120) as terminal:
            terminal.wait_text(holder)
            terminal.press("2")
            terminal.wait(lambda lines: any(re.match(r"> +\d+ active", line) for line in lines), "the recording")
            terminal.press("q")
            assert terminal.wait_end() == 0


@KINDS
def test_the_same_in_json_and_on_the_page(kind: str, aeron_dir: Path, archive_dir: Path) -> None:
    listen = f"127.0.0.1:{free_port()}"
    with (
        blocked(kind, aeron_dir, archive_dir) as position,
        Process("ui", command("ui", aeron_dir, archive_dir, "--listen", listen)) as ui,
    ):
        ui.wait_ready(lambda: "http://" in ui.stdout())

        def asked(path: str, **query: object) -> Any:
            url = f"http://{listen}/api/{path}?{urllib.parse.urlencode(query)}"
            with urllib.request.urlopen(url, timeout=30) as answer:
                found = json.load(answer)
            assert not found.get("error"), (path, found)
            return found

        def tapes() -> list[dict[str, Any]]:
            return [asked("recording", archive=0, recording=one["recording_id"]) for one in asked("recordings")["rows"]]

        def row() -> Any:
            return next(one for one in asked("streams")["rows"] if one["stream_id"] == 1001)

        wait_until(
            lambda: [one["limit_position"] for one in tapes()] == [str(position)], 30, "the recording", state=tapes
        )
        wait_until(lambda: "(feed)" in row()["holder"], 30, "the client's name", state=row)
        stream, overview = row(), asked("overview")
        assert (stream["flow"], stream["position"]) == ("blocked", f"{position:,}")
        assert {one["role"] for one in stream["parties"]} == {"publisher", "subscriber"}
        assert overview["flows"]["blocked"] == 1
        assert [(one["kind"], one["state"]) for one in overview["servers"]] == [
            ("driver", "alive"),
            ("archive", "alive"),
        ]
        (tape,) = tapes()
        assert tape["is_active"]
        messages = asked("messages", last=1, archive=0, recording=tape["recording_id"])
        assert (messages["limit_position"], messages["next"]) == (str(position), str(position))
        assert asked("findings")["findings"]
        done = subprocess.run(
            [*map(str, command("top", aeron_dir, archive_dir, "--once", "--json"))],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        found = json.loads(done.stdout)
        (one,) = [each for each in found["streams"] if each["stream_id"] == 1001]
        assert (one["flow"], one["holder"], one["position"]) == ("blocked", stream["holder"], position)
        (tape,) = found["recordings"]
        assert (tape["state"], tape["position"], tape["stream"]) == ("active", position, one["key"])
        assert [each["state"] for each in found["servers"]] == ["alive", "alive"]
