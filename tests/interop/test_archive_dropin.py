"""Goal: a suite that launches the stock archive as a child process can launch ours, and sees no difference.

Method: the very command line of the stock archive, with `java` replaced by our executable: options of the virtual machine,
class path, settings by `-D` and in property files, main class. Standard error and error log are empty at the end of every
test, save where a test awaits an error. `--subject stock` runs the same command lines with `java`.

Spec: 05 §13.2, 08 §12.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pytest

from tests.conformance.archive.folder import mark_errors
from tests.interop.archiving import Opened, assert_replays, record
from tests.kit import dirs, mark, native, stock
from tests.kit.ports import free_port
from tests.kit.processes import Process, archive_ready
from tests.kit.subject import Subject

ARCHIVING_DRIVER, ARCHIVE = "io.aeron.archive.ArchivingMediaDriver", "io.aeron.archive.Archive"

# What a harness sets for all its archives.
COMMON = {
    "aeron.threading.mode": "SHARED",
    "aeron.shared.idle.strategy": "org.agrona.concurrent.SleepingMillisIdleStrategy",
    "aeron.term.buffer.length": "64k",
    "aeron.ipc.term.buffer.length": "64k",
    "aeron.spies.simulate.connection": "true",
    "aeron.dir.delete.on.start": "true",
    "aeron.archive.threading.mode": "SHARED",
    "aeron.archive.idle.strategy": "org.agrona.concurrent.SleepingMillisIdleStrategy",
    "aeron.archive.segment.file.length": "131072",
    "aeron.archive.file.sync.level": "0",
    "aeron.archive.recording.events.enabled": "false",
    "aeron.archive.max.catalog.entries": "1024",
    "aeron.archive.authenticator.supplier": "io.aeron.security.DefaultAuthenticatorSupplier",
}


@dataclass(slots=True, kw_only=True)
class Launched:
    """An archive that was launched."""

    aeron_dir: Path
    archive_dir: Path
    process: Process

    def end(self, signum: int = signal.SIGTERM) -> None:
        """End it as a harness does: the exit code is a virtual machine's, without error output."""
        if self.process.returncode is None:
            assert self.process.stop(signum) == 128 + signum, self.process.report()
        assert not self.process.stderr(), self.process.report()
        assert not mark_errors(self.archive_dir)
        seen = mark.read(self.archive_dir)
        assert seen is None or seen.activity_ms == mark.CLEAN_END


Launch = Callable[..., Launched]


@pytest.fixture
def command(subject: Subject) -> Callable[..., list[str]]:
    """The command line that a harness has; `java` is ours where ours is under test."""

    def line(main: str, settings: Mapping[str, str], files: Sequence[Path] = ()) -> list[str]:
        defines = [f"-D{name}={value}" for name, value in settings.items()]
        java = stock.java([main, *files], options=[*stock.QUICK_START, "-ea", *defines])
        return java if subject.is_stock else [str(native.executable("aeron-spark-archive")), *java[1:]]

    return line


@pytest.fixture
def launch(command: Callable[..., list[str]]) -> Iterator[Launch]:
    """`launch(settings)` starts driver and archive in folders of their own, and ends them after the test."""
    with ExitStack() as stack:
        launched: list[Launched] = []

        def start(
            settings: Mapping[str, str] | None = None,
            *,
            main: str = ARCHIVING_DRIVER,
            aeron_dir: Path | None = None,
            archive_dir: Path | None = None,
            mark_dir: Path | None = None,
            files: Sequence[Path] = (),
        ) -> Launched:
            aeron_dir = aeron_dir or stack.enter_context(dirs.fresh("dropin"))
            archive_dir = archive_dir or stack.enter_context(dirs.fresh("archive"))
            named = {
                **COMMON,
                "aeron.dir": str(aeron_dir),
                "aeron.archive.dir": str(archive_dir),
                "aeron.archive.control.channel": f"aeron:udp?endpoint=localhost:{free_port()}",
                "aeron.archive.replication.channel": "aeron:udp?endpoint=localhost:0",
                **(settings or {}),
            }
            process = Process("archive", command(main, named, files))
            stack.callback(process.kill)
            process.wait_ready(archive_ready(process, mark_dir or archive_dir))
            launched.append(Launched(aeron_dir=aeron_dir, archive_dir=archive_dir, process=process))
            return launched[-1]

        yield start
        for one in reversed(launched):
            one.end()


def test_records_and_ends_like_the_stock_process(launch: Launch, peer: Any, stream: int, opened: Opened) -> None:
    """Two runs on one folder: what the first recorded, the second replays, every byte."""
    first = launch()
    archive = peer.archiveClient(str(first.aeron_dir))
    with ExitStack() as during:
        during.callback(archive.close)
        run = record(archive, lambda it: during.enter_context(_Closing(it)).it, stream, 300)
    first.end()
    assert "Shutdown Archive..." in first.process.stdout()
    second = launch(archive_dir=first.archive_dir)
    again = opened(peer.archiveClient(str(second.aeron_dir)))
    assert_replays(again, opened, run.recording_id, 300, stop=run.position)


class _Closing:
    """A peer's object that a `with` closes."""

    def __init__(self, it: Any) -> None:
        self.it = it

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.it.close()


def test_beside_a_driver_with_settings_in_files(launch: Launch, subject: Subject, peer: Any, tmp_path: Path) -> None:
    """The archive alone, its id and channel in a properties file; a later file wins over the line."""
    with dirs.fresh("driver") as aeron_dir, subject.driver(aeron_dir):
        files = [tmp_path / "archive.properties", tmp_path / "more.properties"]
        files[0].write_text(
            "aeron.archive.id=1\naeron.archive.control.channel.enabled=false\n"
            "aeron.archive.control.response.channel=aeron:udp?endpoint=localhost:0\n"
        )
        files[1].write_text("# the last word\naeron.archive.id=4711\n")
        beside = launch(main=ARCHIVE, aeron_dir=aeron_dir, files=files)
        archive = peer.archiveClient(str(aeron_dir))
        assert archive.raw().archiveId() == 4711
        archive.close()
        beside.end(signal.SIGINT)


def test_several_side_by_side_and_none_on_the_same_folder(
    launch: Launch, command: Callable[..., list[str]], peer: Any, stream: int, opened: Opened
) -> None:
    """Two archives with folders of their own serve; a third on the folder of one is refused and disturbs neither."""
    archives = [launch({"aeron.archive.id": str(one)}) for one in (1, 2)]
    with dirs.fresh("third") as aeron_dir:
        settings = {
            **COMMON,
            "aeron.dir": str(aeron_dir),
            "aeron.archive.dir": str(archives[0].archive_dir),
            "aeron.archive.control.channel": f"aeron:udp?endpoint=localhost:{free_port()}",
            "aeron.archive.replication.channel": "aeron:udp?endpoint=localhost:0",
        }
        third = Process("third", command(ARCHIVING_DRIVER, settings))
        assert third.wait_end() == 1
        assert "active mark file detected" in third.stderr()
    for number, one in enumerate(archives, 1):
        archive = opened(peer.archiveClient(str(one.aeron_dir)))
        assert archive.raw().archiveId() == number
        run = record(archive, opened, stream, 10)
        assert run.recording_id == 0
    for client in archives:
        assert mark.is_live(client.archive_dir)


def test_s83_the_mark_file_in_a_folder_of_its_own(launch: Launch) -> None:
    """archive-mark.lnk holds its path, and the folder is deleted at the start where that is asked."""
    with dirs.fresh("mark") as mark_dir, dirs.fresh("archive") as archive_dir:
        left_over = archive_dir / "7-0.rec"  # what no archive makes, ours would not delete
        left_over.write_text("of a run before")
        settings = {"aeron.archive.mark.file.dir": str(mark_dir), "aeron.archive.dir.delete.on.start": "true"}
        one = launch(settings, archive_dir=archive_dir, mark_dir=mark_dir)
        assert (archive_dir / "archive-mark.lnk").read_text().strip() == str(mark_dir)
        assert not (archive_dir / "archive-mark.dat").exists()
        assert not left_over.exists()
        one.process.stop()
        one.end()


def test_what_is_made_is_not_for_everybody(  # noqa: PLR0917 - fixtures
    launch: Launch, subject: Subject, peer: Any, stream: int, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even with an open umask others than user and group get nothing, and only the user writes."""
    if subject.is_stock:
        pytest.skip("ours alone: the stock archive leaves it to the umask")
    monkeypatch.setenv("AERON_SPARK_DIR_WRITERS", "all")  # the driver's files are as open as the umask
    before = os.umask(0)
    try:
        with dirs.fresh("parent") as parent:
            one = launch(archive_dir=parent / "archive", mark_dir=parent / "archive")
            archive = peer.archiveClient(str(one.aeron_dir))
            run = record(archive, opened, stream, 10)
            archive.close()
            assert (one.archive_dir / f"{run.recording_id}-0.rec").exists()
            assert one.archive_dir.stat().st_mode & 0o777 == 0o750
            modes = {path.name: path.stat().st_mode & 0o777 for path in one.archive_dir.iterdir()}
            assert set(modes.values()) == {0o640}, modes
            one.end()
    finally:
        os.umask(before)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["io.aeron.cluster.ClusteredMediaDriver"], "ArchivingMediaDriver or io.aeron.archive.Archive"),
        (["-Daeron.archive.authenticator.supplier=com.example.Mine", ARCHIVE], "aeron.spark.archive.credentials.file"),
        (["-Daeron.archive.segment.file.length=100000", ARCHIVE], "aeron.archive.segment.file.length=100000"),
        (["-no-such-option", ARCHIVE], "unknown option -no-such-option"),
    ],
)
def test_what_can_not_be_is_refused(subject: Subject, arguments: Sequence[str], text: str) -> None:
    """With the remedy, at the start."""
    if subject.is_stock:
        pytest.skip("ours alone: what stands for a virtual machine here")
    process = Process(
        "archive", [native.executable("aeron-spark-archive"), "-Xmx1g", "-cp", "aeron-all.jar", *arguments]
    )
    assert process.wait_end() == 1
    assert text in process.stderr()
