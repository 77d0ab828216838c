"""`aeron-spark top` in a real pseudo-terminal: screens are compared, keys and sizes change them, the terminal stays as it was.

Method: a program shows a fixed moment (`tests/kit/live_scene.py`), pyte is the terminal. `tests/python/screens` has the screens
that are expected, written by `python -m tests.kit.live_scene write`. One test runs the command itself on real servers.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from rich.text import Text

from aeron_spark import Archive, Client
from aeron_spark.cli.__main__ import main, parser
from aeron_spark.live.facts import Facts, Flow
from aeron_spark.top.amounts import amount, moment, span
from aeron_spark.top.screen import Screen
from aeron_spark.top.terminal import Keys, run
from tests.kit import live_scene, native
from tests.kit.forged_counters import set_heartbeat_back
from tests.kit.terminal import Terminal
from tests.kit.wait import wait_until

SCENE = [sys.executable, "-m", "tests.kit.live_scene", "show"]
COMMAND = [sys.executable, "-m", "aeron_spark.cli"]
OPENS = b"\x1b[?1049h"
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def scene() -> Iterator[Terminal]:
    """The fixed moment; after `q` it is shown anew."""
    with Terminal(SCENE) as terminal:
        terminal.wait_text("q quit")
        yield terminal


def shown_anew(terminal: Terminal, columns: int, lines: int, keys: str) -> None:
    """The same moment in another size, after some keys."""
    opened = terminal.sent.count(OPENS)
    terminal.press("\x1b\x1b")
    terminal.press("q")
    terminal.wait(lambda _: terminal.sent.count(OPENS) > opened, "the next screen")
    terminal.wait_text("q quit")
    terminal.resize(columns, lines)
    terminal.press(keys)


def expected(name: str) -> list[str]:
    return (live_scene.SCREENS / f"{name}.txt").read_text("utf-8").rstrip("\n").split("\n")


@pytest.mark.parametrize("name", live_scene.EXPECTED)
def test_screens(name: str, scene: Terminal) -> None:
    shown_anew(scene, *live_scene.EXPECTED[name])
    scene.wait_shows(expected(name))


def test_the_files_of_screens_are_those_that_are_expected() -> None:
    assert {one.stem for one in live_scene.SCREENS.iterdir()} == live_scene.EXPECTED.keys()


def test_a_window_may_change_its_size_and_be_tiny(scene: Terminal) -> None:
    shown_anew(scene, 100, 18, "")
    scene.wait_shows(expected("streams"))
    for columns, lines in ((40, 14), (9, 3), (1, 1), (300, 60)):
        scene.resize(columns, lines)
        if columns == 40:
            scene.wait_shows(expected("narrow"))
        scene.wait(any, "something to be shown")
    scene.resize(100, 18)
    scene.wait_shows(expected("streams"))


def test_keys_go_through_rows_texts_and_back(scene: Terminal) -> None:
    shown_anew(scene, 100, 18, "\x1b[B\x1b[Bk")
    scene.wait(lambda lines: lines[7].startswith(">   1002"), "the second row")
    scene.press("\r")
    scene.wait_text("subscriber 61 (risk) holds back sender 22")
    scene.press("\x1b")
    scene.wait(lambda lines: lines[7].startswith(">   1002"), "the table again")
    scene.press("/udx\x7fp\r")
    scene.wait_text("1 of 4 streams by state, with 'udp'")
    scene.press("/x")
    scene.wait_text("no row has 'udpx'")
    scene.press("\x1b")
    scene.press("\x1b")
    scene.wait_text("4 streams by state")
    scene.press("\x1b[F")
    scene.wait(lambda lines: lines[9].startswith(">   1003"), "the last row")
    scene.press("\t")
    scene.wait_text("3 recordings by state")
    scene.press("\x1b[Z")
    scene.wait_text("4 streams by state")
    scene.press("p")
    scene.wait_text("PAUSED")
    scene.press("?\x1b[6~\x1b[6~")
    scene.wait_text("by the last ten minutes")


def test_only_what_changes_is_written(scene: Terminal) -> None:
    shown_anew(scene, 100, 18, "")
    scene.wait_shows(expected("streams"))
    before = len(scene.sent)
    scene.press("p")
    scene.wait_text("PAUSED")
    assert len(scene.sent) - before < 200


def test_the_colours_are_those_that_the_terminal_wants(scene: Terminal) -> None:
    shown_anew(scene, 100, 18, "")
    scene.wait_shows(expected("streams"))
    assert "red" in scene.colours(7)
    with Terminal(SCENE, columns=100, lines=18, env={"NO_COLOR": "1"}) as plain:
        plain.wait_shows(expected("streams"))
        assert set().union(*(plain.colours(line) for line in range(18))) == {"default"}


def test_a_dumb_terminal_gets_no_escape() -> None:
    with Terminal(SCENE, columns=60, lines=18, env={"TERM": "dumb"}) as terminal:
        terminal.wait_text("blocked")
        terminal.press("3")
        terminal.wait_text("unreadable")
        terminal.press("\x03")
    assert b"\x1b" not in terminal.sent


@contextmanager
def command(aeron_dir: Path, *words: str | Path, columns: int = 100, lines: int = 30) -> Iterator[Terminal]:
    with Terminal([*COMMAND, "top", "--dir", aeron_dir, *words], columns=columns, lines=lines) as terminal:
        yield terminal


def test_the_terminal_is_left_as_it_was(aeron_dir: Path) -> None:
    with native.driver(aeron_dir):
        for ends in ("q", "\x03", signal.SIGTERM):
            with command(aeron_dir) as terminal:
                terminal.wait_text("q quit")
                assert terminal.mode() != terminal.before
                if isinstance(ends, str):
                    terminal.press(ends)
                else:
                    terminal.process.send_signal(ends)
                assert terminal.wait_end() == 0
                assert terminal.mode() == terminal.before
                assert terminal.sent.endswith(b"\x1b[?25h\x1b[?1049l")


def test_it_ends_with_its_terminal(aeron_dir: Path) -> None:
    with native.driver(aeron_dir), command(aeron_dir) as terminal:
        terminal.wait_text("q quit")
        terminal.hang_up()
        assert terminal.process.wait(60) in {0, 1}


def test_it_stops_and_goes_on_as_the_shell_says(aeron_dir: Path) -> None:
    with native.driver(aeron_dir), command(aeron_dir) as terminal:
        terminal.wait_text("q quit")
        terminal.press("\x1a")
        stat = Path(f"/proc/{terminal.process.pid}/stat")
        wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", 30, "it to be stopped")
        assert terminal.mode() == terminal.before
        opened = terminal.sent.count(OPENS)
        os.kill(terminal.process.pid, signal.SIGCONT)
        terminal.wait(lambda _: terminal.sent.count(OPENS) > opened, "the screen again")
        terminal.press("q")
        assert terminal.wait_end() == 0


def test_real_servers(aeron_dir: Path, archive_dir: Path) -> None:
    """A publisher whose reader stands still, a recording; then the driver dies, its directory vanishes, another one starts."""
    with (
        native.driver(aeron_dir) as driver,
        native.archive(aeron_dir, archive_dir),
        Client(aeron_dir, name="feed") as client,
    ):
        with command(aeron_dir, "--archive-dir", archive_dir, "--interval", "0.2", columns=140) as terminal:
            channel = "aeron:ipc?term-length=64k"
            with Archive(aeron_dir=aeron_dir) as archive, client.add_publication(channel, 1001) as publication:
                archive.start_recording(channel, 1001)
                with client.add_subscription(channel, 1001) as subscription, subscription.wait_image(30):
                    publication.wait_connected(30)
                    while publication.offer(bytes(1000)) > 0:
                        pass
                    # A client tells its name with its first heartbeat.
                    held_back = re.compile(r"1001 .* blocked +subscriber \d+ \(feed\) ")
                    terminal.wait(lambda lines: any(map(held_back.search, lines)), "who holds back whom")
                    terminal.press("\r")
                    terminal.wait_text("holds back publisher")
                    terminal.wait_text("recording  ")
                    terminal.press("\x1b")
                    terminal.press("2")
                    terminal.wait(lambda lines: any(re.match(r">? +0 active", line) for line in lines), "the recording")
                    terminal.press("4")
                    terminal.wait_text("archive")
            terminal.press("3")
            terminal.wait(lambda lines: any(re.match(r".archive +alive", line) for line in lines), "the archive")
            driver.kill()
            set_heartbeat_back(aeron_dir, 60)
            terminal.wait_text(f"driver {aeron_dir}: dead")
            shutil.rmtree(aeron_dir)
            terminal.wait_text(f"driver {aeron_dir}: unreadable: there is no cnc.dat")
            with native.driver(aeron_dir):
                terminal.wait(lambda lines: any(re.match(r".driver +alive", line) for line in lines), "the next driver")
            # In the place of the file, not into it: who has it mapped keeps what is there.
            (aeron_dir / "hostile").write_bytes(b"\x1b[2J" * 10_000)
            (aeron_dir / "hostile").replace(aeron_dir / "cnc.dat")
            terminal.wait_text(f"driver {aeron_dir}: unreadable: ")
            terminal.press("q")
            assert terminal.wait_end() == 0
            assert b"Traceback" not in terminal.sent


def test_once_prints_tables_and_json(aeron_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["top", "--dir", str(aeron_dir), "--once", "--interval", "0.2"]
    with native.driver(aeron_dir) as driver, Client(aeron_dir) as client, client.add_publication("aeron:ipc", 7):

        def streams() -> list[dict[str, object]]:
            assert main([*words, "--json"]) == 0
            found = json.loads(capsys.readouterr().out)
            assert found["seconds"] >= 0.2
            return list(found["streams"])

        wait_until(lambda: [one["flow"] for one in streams()] == ["no reader"], 30, "the stream")
        assert main(words) == 0
        assert re.search(r"\n +7 .* no reader", "\n" + capsys.readouterr().out.replace("\n7", "\n 7"))
        driver.kill()
    set_heartbeat_back(aeron_dir, 60)
    assert main([*words, "--json"]) == 1
    capsys.readouterr()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--json"], "add --once"),
        (["--interval", "0"], "--interval takes seconds, at least 0.1"),
        ([], "the screen needs a terminal; --once"),
    ],
)
def test_wrong_use(
    words: list[str], reason: str, aeron_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with native.driver(aeron_dir), Path(os.devnull).open(encoding="utf-8") as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        assert main(["top", "--dir", str(aeron_dir), *words]) == 2
    assert reason in capsys.readouterr().err


class Played:
    """A terminal that gives keys at times of a clock of its own."""

    def __init__(self, keys: Sequence[tuple[float, str]], sizes: Sequence[tuple[int, int]] = ((80, 24),)) -> None:
        self.now_s = 0.0
        self._keys = list(keys)
        self._sizes = itertools.cycle(sizes)
        self.frames: list[list[str]] = []
        self.made_for: list[tuple[int, int]] = []

    @contextmanager
    def opened(self) -> Iterator[None]:
        yield

    def size(self) -> tuple[int, int]:
        return next(self._sizes)

    def draw(self, lines: Sequence[Text], size: tuple[int, int]) -> None:
        self.frames.append([line.plain for line in lines])
        self.made_for.append(size)

    def key(self, timeout_s: float) -> str | None:
        at_s, key = self._keys[0]
        if at_s > self.now_s + timeout_s:
            self.now_s += timeout_s
            return None
        self.now_s = max(self.now_s, at_s)
        self._keys.pop(0)
        return key


def test_it_reads_each_interval_and_not_for_each_key() -> None:
    terminal = Played([(0.1, "j"), (0.2, "j"), (2.5, "p"), (9.5, "p"), (11.0, "q")])
    read_at: list[float] = []

    def read() -> Facts:
        read_at.append(terminal.now_s)
        return live_scene.moment()

    run(read, 1.0, terminal, lambda: terminal.now_s)  # type: ignore[arg-type]
    assert read_at == [0, 1, 2, 10]
    assert sum("PAUSED" in frame[0] for frame in terminal.frames) >= 7


def test_a_frame_is_of_the_size_that_it_was_made_for() -> None:
    """The window may change while a frame is made: the next one, of another size, then begins with an empty screen."""
    terminal = Played([(0.1, "j"), (0.2, "j"), (0.3, "q")], sizes=[(300, 60), (100, 18)])
    run(live_scene.moment, 1.0, terminal, lambda: terminal.now_s)  # type: ignore[arg-type]
    assert terminal.made_for == [(300, 60), (100, 18), (300, 60)]
    assert [len(frame) for frame in terminal.frames] == [lines for _, lines in terminal.made_for]


def test_the_cursor_stays_with_its_row() -> None:
    """Sorted by what changes, on another place each time."""
    screen, shown = Screen(1), live_scene.moment()
    screen.lines(shown, 100, 18)
    screen.press("j", shown)
    for key in ("s", "r", "S", "s"):
        screen.press(key, shown)
        (marked,) = [line.plain for line in screen.lines(shown, 100, 18) if line.plain.startswith(">")]
        assert marked.startswith(">   1002")


def test_rows_are_of_the_facts_that_are_given() -> None:
    """Also where these lie in memory at the place of others, which are gone."""
    screen, shown = Screen(1), replace(live_scene.moment())
    assert any("1002" in line.plain for line in screen.lines(shown, 100, 18))
    place = id(shown)
    del shown
    others = [Facts(time_ms=0, seconds=1) for _ in range(10_000)]
    found = next((one for one in others if id(one) == place), others[0])
    assert not any("1002" in line.plain for line in screen.lines(found, 100, 18))


def test_a_row_that_goes_is_told_in_its_detail() -> None:
    screen, shown = Screen(1), live_scene.moment()
    screen.press("enter", shown)
    assert "it is gone: Esc goes back" in [line.plain for line in screen.lines(Facts(time_ms=0, seconds=1), 80, 20)]


def test_without_servers_each_table_says_so() -> None:
    nothing = Facts(time_ms=0, seconds=None)
    for key, text in (("1", "no streams"), ("2", "no recordings: "), ("3", "no servers"), ("4", "no clients")):
        assert any(line.plain.startswith(text) for line in live_scene.frame(80, 20, key, nothing))


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        ([b"\x1b[A"], ["up"]),
        ([b"\x1b", b"[", b"A"], ["up"]),
        ([b"\x1b", b""], ["escape"]),
        ([b"\x1b[", b""], ["escape", "["]),
        ([b"q\x1bOBj"], ["q", "down", "j"]),
        ([b"\x1b[1;5A\x1b[200~x"], ["x"]),
        (["é".encode()[:1], "é".encode()[1:]], ["é"]),
        ([b"\xff"], ["\ufffd"]),
        ([b"\r\n\t\x7f\x03"], ["enter", "enter", "tab", "backspace", "ctrl-c"]),
    ],
)
def test_keys_of_a_terminal(sent: list[bytes], keys: list[str]) -> None:
    taker = Keys()
    assert [key for part in sent for key in taker.take(part)] == keys


def test_amounts() -> None:
    values = (None, 0, 999, 1000, 99_949, 123_456, 2e9, 2**63)
    assert [amount(value) for value in values] == ["-", "0", "999", "1.0k", "99.9k", "123k", "2.0G", "9.2E"]
    assert [span(value) for value in (None, 1.5, 65, 7260, 90_000)] == ["-", "1s", "1m 05s", "2h 01m", "1d 01h"]
    assert [moment(value) for value in (None, -5, 2**63)] == ["-", "1970-01-01 00:00:00", "9999-12-31 23:59:59"]


def test_the_picture_of_the_documentation_is_what_it_shows() -> None:
    """Compared by its texts, as a new release of rich may write other bytes. Nothing in it is from elsewhere."""
    of = [
        [text.replace("\xa0", " ") for text in ET.fromstring(svg).itertext() if text.strip()]  # noqa: S314 - our own
        for svg in (live_scene.PICTURE.read_text("utf-8"), live_scene.picture())
    ]
    style = re.compile(r"[{}]")
    shown, made = ([text for text in texts if not style.search(text)] for texts in of)
    assert shown == made
    assert "http" not in live_scene.PICTURE.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")


def test_the_commands_of_the_page(aeron_dir: Path, tmp_path: Path) -> None:
    """Those for scripts run as printed, the one with the screen is a command line; each state is explained."""
    page = (ROOT / "docs/top.md").read_text("utf-8")
    (screen,) = re.findall(r"^aeron-spark (top .*--archive-dir .*)$", page, re.MULTILINE)
    assert parser(["top"]).parse_args(screen.split()).archive_dir == ["/data/archive"]
    (script,) = re.findall(r"^```sh\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with native.driver(aeron_dir):
        subprocess.run(
            ["bash", "-euc", script.replace("/dev/shm/aeron-docs", str(aeron_dir))],  # noqa: S607, S108
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            check=True,
            stdout=subprocess.DEVNULL,
        )
    found = json.loads((tmp_path / "facts.json").read_text("utf-8"))
    assert [one["state"] for one in found["servers"]] == ["alive"]
    assert all(f"| `{flow}` |" in page for flow in Flow)
    fields = re.findall(r"`(\w+)`", page.partition("| field | has |")[2].partition("Rates are")[0])
    assert {name for name in fields if name in found} == found.keys() - {"time"}


def test_without_rich_only_the_screen_is_missing(aeron_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "rich.py").write_text("raise ModuleNotFoundError('no', name='rich')\n")
    words = [*COMMAND, "top", "--dir", str(aeron_dir), "--interval", "0.1"]
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with native.driver(aeron_dir):
        screen = subprocess.run(words, capture_output=True, text=True, check=False, env=env)
        once = subprocess.run([*words, "--once"], capture_output=True, text=True, check=False, env=env)
    told = "aeron-spark top: this needs rich, which is not installed here: pip install 'aeron-spark[top]'\n"
    assert (screen.returncode, screen.stderr) == (1, told)
    assert (once.returncode, once.stderr) == (0, "")
    assert "1 servers" in once.stdout
