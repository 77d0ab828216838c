"""A headless Chromium that opens pages of files: its console, what it asks for, how wide a page is, its picture.

It speaks Chromium's own protocol over a pair of pipes (`--remote-debugging-pipe`: JSON, each message ended by a zero byte), so
it needs no driver and no port. What Chromium loads by itself in the background is off.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from aeron_spark.closing import Closing
from tests.kit import wait

PROGRAM = "chromium"
TIMEOUT_S = 60.0
HEIGHT = 900
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars"),
    *("--allow-file-access-from-files", "--remote-debugging-pipe"),
)


class Browser(Closing):
    """One page, which is opened again and again."""

    def __init__(self, home: Path) -> None:
        theirs_in, self._requests = os.pipe()
        self._answers, theirs_out = os.pipe()
        # The protocol's descriptors are 3 and 4.
        command = f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self._process = subprocess.Popen(
            ["bash", "-c", command, PROGRAM, *_FLAGS, f"--user-data-dir={home}"],  # noqa: S607
            pass_fds=(theirs_in, theirs_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._home = home
        self._numbers = itertools.count(1)
        self._unread = b""
        self._session: str | None = None
        self.events: list[Mapping[str, Any]] = []
        """What happened since the page was opened, as the protocol reports it."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        """End it and what it started."""
        with suppress(OSError, AssertionError):
            self._session = None
            self.call("Browser.close")
        os.close(self._requests)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, 9)
            self._process.wait()
        os.close(self._answers)
        shutil.rmtree(self._home, ignore_errors=True)

    def call(self, method: str, **parameters: Any) -> Any:
        """The result of a method of the protocol."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._requests, json.dumps(message).encode() + b"\0")
        for answer in self._messages():
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
        raise AssertionError(f"{PROGRAM} ended before it answered {method}")

    def open(self, url: str, width: int) -> None:
        """Show a page in a window of this width, and wait until all of it is loaded."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=HEIGHT, deviceScaleFactor=1, mobile=width < 600
        )
        # A page that differs by its fragment alone would not be loaded anew.
        self.call("Page.navigate", url="about:blank")
        self.events.clear()
        failure = self.call("Page.navigate", url=url).get("errorText")
        assert failure is None, f"{url}: {failure}"
        wait.wait_until(
            lambda: self.value("document.readyState") == "complete" and self.value("location.href") != "about:blank",
            TIMEOUT_S,
            f"{url} to be loaded",
        )

    def value(self, expression: str) -> Any:
        """What a JavaScript expression gives in the page."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, f"{expression}: {result['exceptionDetails']}"
        return result["result"].get("value")

    def picture(self, path: Path) -> None:
        """What the window shows, as a PNG file, when nothing in it moves any more."""
        self.value("Promise.all(document.getAnimations().map(one => one.finished.catch(() => null))).then(() => true)")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def complaints(self) -> list[str]:
        """Errors and warnings of the console, and exceptions that nobody caught."""
        found = []
        for event in self.events:
            what = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(str(what["exceptionDetails"]))
            elif event["method"] == "Runtime.consoleAPICalled" and what["type"] in ("error", "warning", "assert"):
                found.append(" ".join(str(argument.get("value")) for argument in what["args"]))
            elif event["method"] == "Log.entryAdded" and what["entry"]["level"] in ("error", "warning"):
                found.append(f"{what['entry']['text']} {what['entry'].get('url', '')}")
        return found

    def requested(self) -> list[str]:
        """Addresses of everything that the page loaded."""
        return [
            event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent"
        ]

    def overflow(self) -> int:
        """By how many pixels the page is wider than its window."""
        return int(self.value("document.documentElement.scrollWidth - document.documentElement.clientWidth"))

    def _messages(self) -> Iterator[Mapping[str, Any]]:
        """What comes, until the browser ends or is silent for too long; events are kept."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            while b"\0" in self._unread:
                text, _, self._unread = self._unread.partition(b"\0")
                message = json.loads(text)
                if "method" in message:
                    self.events.append(message)
                yield message
            ready, _, _ = select.select([self._answers], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"{PROGRAM} did not answer within {TIMEOUT_S:g} s"
            received = os.read(self._answers, 1 << 20)
            if not received:
                return
            self._unread += received
