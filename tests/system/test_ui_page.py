"""The page of `aeron-spark ui` in a browser: light and dark, as wide as a phone and a desk, empty, busy and broken.

Method: Chromium opens the page of a server in this process, which shows a fixed moment (`tests/kit/live_scene.py`) or
real recordings. Pictures of what it showed are in build/pictures, to be looked at; those of the documentation are
written by `python -m tests.system.test_ui_page`.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from aeron_spark.live.compare import facts
from aeron_spark.live.facts import Facts
from aeron_spark.testing import RecordedFolder, Servers
from aeron_spark.ui.server import UiServer
from aeron_spark.ui.watch import Watch
from tests.kit import live_scene
from tests.kit.browser import Browser
from tests.kit.market import SCHEMA, quote, trade
from tests.kit.ui_server import Scene, served
from tests.kit.wait import wait_until

pytestmark = pytest.mark.interop

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "build" / "pictures"
OF_DOCS = ROOT / "docs" / "pictures"
PHONE, DESK = 390, 1280
TIMEOUT_S = 60
ALARM = "aeron:ipc?alias=<img src=x onerror=alert(1)><script>alert(2)</script>"


@contextmanager
def recordings() -> Iterator[tuple[Servers, RecordedFolder]]:
    """0: quotes and trades; 1: lines of text; 2: enough for rates over time."""
    with Servers() as servers:
        folder = RecordedFolder(servers)
        folder.write([trade(number) if number % 5 == 4 else quote(number) for number in range(200)], stream_id=1001)
        folder.write([f"line {number}" for number in range(100)], stream_id=7)
        folder.write([bytes(1000)] * 3000, stream_id=8)
        yield servers, folder


@pytest.fixture(scope="module")
def recorded() -> Iterator[UiServer]:
    """A server over real recordings."""
    with recordings() as (servers, folder), served(Watch([str(servers.aeron_dir)], [str(folder.path)])) as running:
        yield running


def shows(browser: Browser, text: str, of: str = "main") -> None:
    """Wait until an element has a text."""
    script = f"document.querySelector({of!r}).innerText"
    wait_until(lambda: text in browser.value(script), TIMEOUT_S, f"{text!r} in {of}")


def count(browser: Browser, selector: str) -> int:
    return int(browser.value(f"document.querySelectorAll({selector!r}).length"))


def opened(browser: Browser, server: UiServer, view: str, width: int, *, scheme: str = "light") -> None:
    """Show a view, and wait until it has asked the server."""
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.open(f"{server.url.partition('#')[0]}#{view}", width)
    wait_until(lambda: browser.value("document.body.dataset.looked ?? '0'") != "0", TIMEOUT_S, "an answer")


def is_well(browser: Browser, server: UiServer) -> None:
    """Nothing complains, nothing comes from elsewhere, nothing sticks out."""
    assert browser.complaints() == []
    base = server.url.partition("#")[0]
    assert [url for url in browser.requested() if not url.startswith(base)] == []
    assert browser.overflow() == 0


#: What shows that a view has what it should, by view.
SEEN = {
    "streams": "held back by subscriber 31 (slow-reader)",
    "recordings": "recording 4",
    "messages": "No archive's folder is named",
    "health": "full in 4h 33m",
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, DESK])
def test_a_busy_moment(browser: Browser, width: int, scheme: str) -> None:
    with served(Scene()) as server:
        for view, text in SEEN.items():
            opened(browser, server, view, width, scheme=scheme)
            shows(browser, text)
            if view == "health":
                shows(browser, "aeron-spark driver --dir /dev/shm/aeron-gone")
            shows(browser, "no cnc.dat in /dev/shm/aeron-gone", "#trouble")
            browser.picture(PICTURES / f"ui-{view}-{scheme}-{width}.png")
            is_well(browser, server)


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_an_empty_moment(browser: Browser, width: int) -> None:
    with served(Scene(Facts(time_ms=live_scene.NOON_MS, seconds=None))) as server:
        texts = ("No stream flows", "No archive's folder is named", "No archive's folder is named", "Servers and disks")
        for view, text in zip(SEEN, texts, strict=True):
            opened(browser, server, view, width)
            shows(browser, text)
            browser.picture(PICTURES / f"ui-empty-{view}-{width}.png")
            is_well(browser, server)


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_a_server_that_ended_is_told_and_found_again(browser: Browser, width: int) -> None:
    with served(Scene()) as server:
        opened(browser, server, "streams", width)
        shows(browser, "stream 1001")
        address = f"127.0.0.1:{server.port}"
    shows(browser, "does not answer; what you see is of", "#trouble")
    browser.picture(PICTURES / f"ui-broken-{width}.png")
    assert browser.overflow() == 0
    shows(browser, "stream 1001")
    with served(Scene(), listen=address):
        wait_until(
            lambda: "does not answer" not in browser.value("document.body.innerText"), TIMEOUT_S, "the page to go on"
        )


def test_texts_of_others_are_texts(browser: Browser) -> None:
    """Channels, clients, errors and folders hold markup; nothing of it becomes an element or runs."""
    base = live_scene.moment()
    party = replace(base.streams[0].parties[0], client=ALARM, directory=ALARM)
    hostile = Facts(
        time_ms=base.time_ms,
        seconds=1.0,
        streams=tuple(
            replace(one, channel=ALARM, parties=(party, *one.parties[1:]), holder=ALARM) for one in base.streams
        ),
        recordings=tuple(replace(one, channel=ALARM, archive=ALARM) for one in base.recordings),
        servers=tuple(replace(one, path=ALARM, trouble=ALARM, archive_id=ALARM) for one in base.servers),
        errors=tuple(replace(one, message=ALARM, directory=ALARM) for one in base.errors),
    )
    with served(Scene(hostile)) as server:
        for view in ("streams", "recordings", "health"):
            opened(browser, server, view, DESK)
            shows(browser, ALARM)
            assert count(browser, "img, main script") == 0
            is_well(browser, server)
        opened(browser, server, "streams", DESK)
        shows(browser, ALARM)
        browser.value("document.querySelector('.lane .name').click()")
        shows(browser, ALARM, "#detail-body")
        assert count(browser, "img, main script, dialog script") == 0
        # And the server's policy lets no script run that is not the page's own.
        browser.value(
            "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.ran = 1'}))"
        )
        assert browser.value("window.ran ?? null") is None


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_a_thousand_streams(browser: Browser, width: int) -> None:
    """Only lanes near the window exist, wherever it is; a refresh asks for no more."""
    with served(Scene(facts(live_scene.many(1000), live_scene.many(1000, 0)))) as server:
        opened(browser, server, "streams", width)
        shows(browser, "1000", "#count-streams")
        wait_until(lambda: count(browser, ".lane") > 5, TIMEOUT_S, "lanes")
        browser.picture(PICTURES / f"ui-thousand-{width}.png")
        elements = count(browser, "*")
        browser.value("scrollTo(0, document.documentElement.scrollHeight / 2)")
        shows(browser, "stream 500", "#lanes")
        browser.value("scrollTo(0, document.documentElement.scrollHeight)")
        shows(browser, "stream 1000", "#lanes")
        assert count(browser, ".lane") <= 20
        assert count(browser, "*") < 1.5 * elements < 1500
        sizes = "filter(one => one.name.includes('/api/streams')).map(one => one.decodedBodySize)"
        took = browser.value(f"performance.getEntriesByType('resource').{sizes}")
        assert took
        assert max(took) < 60_000
        browser.value("document.querySelector('#stream-filter').value = '-77'")
        browser.value("document.querySelector('#stream-filter').dispatchEvent(new Event('input', {bubbles: true}))")
        wait_until(lambda: count(browser, ".lane") == 1, TIMEOUT_S, "the one stream of session -77")
        is_well(browser, server)


def test_a_stream_opened(browser: Browser) -> None:
    with served(Scene()) as server:
        opened(browser, server, "streams", DESK)
        shows(browser, "stream 1002")
        browser.value(
            "[...document.querySelectorAll('.lane .name')].find(one => one.innerText === 'stream 1002').click()"
        )
        shows(browser, "receiver 51", "#detail-body")
        shows(browser, "10.0.0.7:40123", "#detail-body")
        browser.picture(PICTURES / "ui-stream-1280.png")
        is_well(browser, server)


def test_a_server_that_hangs_is_told(browser: Browser) -> None:
    class Hanging(Scene):
        gate = threading.Event()

        def facts(self) -> Facts:
            assert self.gate.wait(TIMEOUT_S)
            return super().facts()

    scene = Hanging()
    scene.gate.set()
    with served(scene) as server:
        opened(browser, server, "streams", DESK)
        shows(browser, "stream 1001")
        browser.value("const real = AbortSignal.timeout.bind(AbortSignal); AbortSignal.timeout = () => real(200); 0")
        scene.gate.clear()
        shows(browser, "does not answer; what you see is of", "#trouble")
        scene.gate.set()
        wait_until(lambda: "does not answer" not in browser.value("document.body.innerText"), TIMEOUT_S, "an answer")


def test_a_server_of_another_archive_at_the_same_address(browser: Browser, tmp_path: Path) -> None:
    """The archive's name and its messages are of one server."""
    for name in ("alpha", "beta"):
        with Servers() as servers:
            RecordedFolder(servers).write([f"{name} {number}" for number in range(3)])
            shutil.copytree(servers.archive_dir, tmp_path / name)
    with served(Watch([], [str(tmp_path / "alpha")])) as server:
        opened(browser, server, "messages?archive=0&recording=0", DESK)
        shows(browser, "alpha 0", "#list")
        address = f"127.0.0.1:{server.port}"
    with served(Watch([], [str(tmp_path / "beta")]), listen=address):
        shows(browser, "beta 0", "#list")
        assert browser.value("document.querySelector('#archive').selectedOptions[0].text") == str(tmp_path / "beta")


def test_a_message_that_cannot_be_read_shows_no_other(browser: Browser, recorded: UiServer) -> None:
    opened(browser, recorded, "messages?archive=0&recording=1", DESK)
    wait_until(lambda: not browser.value("document.querySelector('#message').hidden"), TIMEOUT_S, "the first message")
    browser.value(
        "const real = window.fetch; window.fetch = async (...asked) => asked[0] === '/api/message' ?"
        " new Response(JSON.stringify({error: 'it was purged'})) : real(...asked); 0"
    )
    browser.value("document.querySelector('#list tbody tr:nth-child(2)').click(); 0")
    shows(browser, "it was purged", "#one-trouble")
    assert browser.value("document.querySelector('#message').hidden")


def test_figures_stand_still_while_paused(browser: Browser) -> None:
    scene = Scene()
    with served(scene) as server:
        opened(browser, server, "streams", DESK)
        shows(browser, "stream 1001")
        browser.value("document.querySelector('#pause').click()")
        shows(browser, "Paused", "#status")
        looked = browser.value("document.body.dataset.looked")
        scene.moment = Facts(time_ms=live_scene.NOON_MS, seconds=None)
        # The timer of the page is asked twice, and did not look.
        browser.value("new Promise(done => setTimeout(done, 2100))")
        assert int(browser.value("document.body.dataset.looked")) <= int(looked) + 1
        shows(browser, "stream 1001")
        browser.value("document.querySelector('#pause').click()")
        shows(browser, "No stream flows")


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_recordings_and_their_segments(browser: Browser, recorded: UiServer, width: int) -> None:
    opened(browser, recorded, "recordings", width)
    shows(browser, "recording 0")
    browser.picture(PICTURES / f"ui-recorded-{width}.png")
    name = "[...document.querySelectorAll('.tape .name')].find(one => one.innerText === 'recording 2')"
    browser.value(f"{name}.click()")
    shows(browser, "2-0.rec", "#detail-body")
    assert count(browser, ".chart rect") > 5
    browser.picture(PICTURES / f"ui-recording-{width}.png")
    is_well(browser, recorded)
    browser.value("document.querySelector('#detail-body a').click()")
    wait_until(lambda: count(browser, "#list tbody tr") == 50, TIMEOUT_S, "messages of the recording")
    is_well(browser, recorded)


def test_a_view_that_is_chosen_while_another_one_looks_is_entered(browser: Browser, recorded: UiServer) -> None:
    """The answer to the first look is held back until the address has changed."""
    opened(browser, recorded, "recordings", DESK)
    shows(browser, "recording 0")
    browser.value(
        "const real = window.fetch, gate = new Promise(go => { window.go = go; });"
        "window.fetch = async (...asked) => { window.isAsked = true; await gate; return real(...asked); }; 0"
    )
    wait_until(lambda: browser.value("window.isAsked === true"), TIMEOUT_S, "the page to look")
    browser.value("location.hash = '#messages?archive=0&recording=2'; 0")
    browser.value("window.go(); 0")
    wait_until(lambda: count(browser, "#list tbody tr") == 50, TIMEOUT_S, "messages of the recording")
    is_well(browser, recorded)


def choose_schema(browser: Browser, path: Path) -> None:
    """As a user chooses a file."""
    document = browser.call("DOM.getDocument")["root"]["nodeId"]
    node = browser.call("DOM.querySelector", nodeId=document, selector="#schema-file")["nodeId"]
    browser.call("DOM.setFileInputFiles", nodeId=node, files=[str(path)])


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, DESK])
def test_messages_as_bytes_tree_and_row(
    browser: Browser, recorded: UiServer, tmp_path: Path, width: int, scheme: str
) -> None:
    schema = tmp_path / "prices.xml"
    schema.write_text(SCHEMA, "utf-8")
    opened(browser, recorded, "messages?archive=0&recording=0", width, scheme=scheme)
    shows(browser, "Drop in the schema", "#tree")
    choose_schema(browser, schema)
    shows(browser, "Quote", "#tree")
    shows(browser, "sbe_template", "#row")
    jump(browser, "position", "256")
    shows(browser, "Trade", "#tree")
    assert browser.value("document.querySelector('#list tbody tr').dataset.position") == "256"
    browser.value("document.querySelectorAll('#list tbody tr')[1].click()")
    shows(browser, "Quote", "#tree")
    browser.picture(PICTURES / f"ui-messages-{scheme}-{width}.png")
    is_well(browser, recorded)
    jump(browser, "time", "2001-01-01T00:00")
    wait_until(
        lambda: browser.value("document.querySelector('#list tbody tr')?.dataset.position") == "0",
        TIMEOUT_S,
        "the first",
    )
    jump(browser, "last", "")
    wait_until(lambda: browser.value("document.querySelector('#later').disabled"), TIMEOUT_S, "the end")
    jump(browser, "time", "soon")
    shows(browser, "is no time", "#message-trouble")


def jump(browser: Browser, by: str, to: str) -> None:
    browser.value(
        f"(by => {{ by.value = {by!r}; by.dispatchEvent(new Event('input')); document.querySelector('#jump-to').value = {to!r};"
        " document.querySelector('#jump').requestSubmit() })(document.querySelector('#jump-by'))"
    )


def test_a_page_of_another_site_cannot_ask(browser: Browser, recorded: UiServer) -> None:
    """Another origin in the same browser: reads nothing, and its POST is not answered."""
    with served(Scene()) as other:
        opened(browser, other, "streams", DESK)
        # The page's own policy would stop it first.
        browser.call("Page.setBypassCSP", enabled=True)
        try:
            opened(browser, other, "streams", DESK)
            ask = f"fetch('{recorded.url}api/overview').then(one => one.status, () => 'refused')"
            assert browser.value(ask) == "refused"
            blind = f"fetch('{recorded.url}api/overview', {{mode: 'no-cors'}}).then(one => one.status, () => 'refused')"
            assert browser.value(blind) in (0, "refused")
        finally:
            browser.call("Page.setBypassCSP", enabled=False)


def test_the_page_asks_for_the_token(browser: Browser) -> None:
    with served(Scene(), listen="127.0.0.1:0", token=4 * "+%2/=") as server:
        browser.value("sessionStorage.clear()")
        opened(browser, server, "streams", PHONE)
        shows(browser, "wants the token", "body")
        browser.picture(PICTURES / "ui-token-390.png")
        assert count(browser, ".lane") == 0
        browser.open(server.url, DESK)
        shows(browser, "stream 1001")
        assert "token" not in browser.value("location.href")


def write(browser: Browser, schema: Path, keep: Callable[[str], object]) -> None:
    """The pictures of the documentation."""
    with served(Scene()) as server:
        opened(browser, server, "streams", DESK)
        shows(browser, SEEN["streams"])
        keep("ui-streams.png")
    with recordings() as (servers, folder), served(Watch([str(servers.aeron_dir)], [str(folder.path)])) as server:
        opened(browser, server, "messages?archive=0&recording=0", DESK)
        shows(browser, "Drop in the schema", "#tree")
        choose_schema(browser, schema)
        shows(browser, "Quote", "#tree")
        keep("ui-messages.png")


if __name__ == "__main__":
    home = Path(tempfile.mkdtemp())
    (home / "prices.xml").write_text(SCHEMA, "utf-8")
    with Browser(home / "browser") as chromium:
        write(chromium, home / "prices.xml", lambda name: chromium.picture(OF_DOCS / name))
    shutil.rmtree(home)
    sys.exit(0)
