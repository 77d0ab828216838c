"""The image of conf/container: small, static, and its servers serve without privilege on a root that cannot be written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aeron_spark import Archive, Client, Folder, SourceLocation
from tests.kit import container, dirs, needs, ports, require, service_log
from tests.kit.processes import Process, archive_ready, driver_ready

pytestmark = pytest.mark.interop

ROOT = Path(__file__).resolve().parents[2]
MOST_BYTES = 2_000_000  # as the page says
PAGE = (ROOT / "docs" / "containers.md").read_text("utf-8")
PROGRAMS = ("aeron-spark-archive", "aeron-spark-driver")


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> container.Image:
    require.beyond("an image of a container")
    if absent := needs.absent("buildah"):
        require.missing(f"install {' '.join(absent)}, for the image of the container")
    return container.build(tmp_path_factory.mktemp("storage"))


@pytest.fixture
def shared() -> Iterator[Path]:
    """Shared memory of the containers and of this host, at one path."""
    with dirs.fresh("container") as path:
        os.chown(path, container.USER, container.USER)
        yield path


@pytest.fixture
def recordings(archive_dir: Path) -> Path:
    os.chown(archive_dir, container.USER, container.USER)
    return archive_dir


def test_the_image_holds_two_static_executables(image: container.Image) -> None:
    files = {path for path in image.root.rglob("*") if path.is_file()}
    assert {str(path.relative_to(image.root)) for path in files} == {
        *(f"bin/{name}" for name in PROGRAMS),
        *("etc/passwd", "etc/group"),
        *(f"usr/share/licenses/{name}" for name in ("aeron_spark/LICENSE", "musl/copyright")),
    }
    assert sum(path.stat().st_size for path in files) < MOST_BYTES
    for name in PROGRAMS:
        headers = subprocess.run(
            ["readelf", "--program-headers", "--wide", image.root / "bin" / name],  # noqa: S607
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert "LOAD" in headers
        assert "INTERP" not in headers
        assert not re.search(r"GNU_STACK.* RWE ", headers)
    assert "less than 2 MB" in PAGE
    assert image.config["User"] == f"{container.USER}:{container.USER}"
    assert (image.root / "var/lib/aeron-archive").stat().st_uid == container.USER


def test_servers_serve_from_the_image(
    image: container.Image, shared: Path, recordings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AERON_SPARK_DIR_OWNER", str(container.USER))
    aeron_dir = shared / "aeron"
    settings = (f"-Daeron.dir={aeron_dir}", "-Daeron.archive.control.channel=aeron:udp?endpoint=0.0.0.0:CONTROL")

    def process(*arguments: str) -> Process:
        return Process(arguments[0], image.command(shared, recordings, *arguments))

    assert process("aeron-spark-driver", "--check", settings[0]).wait_end() == 1
    control = str(ports.free_port())
    options = [one.replace("CONTROL", control) for one in settings]
    driver = process("aeron-spark-driver", options[0], "-Daeron.threading.mode=SHARED")
    driver.wait_ready(driver_ready(driver, aeron_dir))
    archive = process("aeron-spark-archive", "--beside-driver", *options)
    archive.wait_ready(archive_ready(archive, recordings))
    assert process("aeron-spark-driver", "--check", options[0]).wait_end() == 0
    assert process("aeron-spark-archive", "--check").wait_end() == 0

    messages = [b"%d" % number for number in range(10_000)]
    channel = f"aeron:udp?endpoint=127.0.0.1:{ports.free_port()}"
    with (
        Client(aeron_dir) as client,
        Archive(client=client, control_channel=f"aeron:udp?endpoint=127.0.0.1:{control}") as session,
    ):
        session.start_recording(channel, 7, source=SourceLocation.REMOTE)
        with client.add_exclusive_publication(channel, 7) as publication:
            publication.wait_connected(10)
            recording = session.wait_recording("aeron:udp", 7, publication.session_id)
            session.wait_position(recording, publication.offer_batch(messages))
    assert archive.stop() == 15, archive.report()
    assert driver.stop() == 15, driver.report()
    assert service_log.problems(archive.stderr() + driver.stderr()) == []
    with Folder(recordings) as folder:
        read = [value for batch in folder.read(recording) for value in batch.column("value").to_pylist()]
    assert read == messages
    assert process("aeron-spark-archive", "--check").wait_end() == 1


def test_the_page_builds_it_so() -> None:
    """With podman, which takes the same words as the buildah of these tests."""
    commands = [
        "conf/container/build.sh",
        "podman build -t aeron-spark -f conf/container/Containerfile build/container",
    ]
    assert "\n".join(commands) in PAGE
    assert container.FOLDER == ROOT / "build" / "container"


def test_what_the_image_does_not_give_is_refused(image: container.Image, shared: Path, recordings: Path) -> None:
    """Its root cannot be written: a folder there is an error that names it."""
    command = image.command(shared, recordings, "aeron-spark-driver", "-Daeron.dir=/elsewhere/aeron")
    driver = Process("driver", command)
    assert driver.wait_end() == 1
    assert "/elsewhere" in driver.stderr()
    assert "Read-only file system" in driver.stderr()


def test_static_servers_pass_where_the_others_do(image: container.Image) -> None:
    """Another libc: sockets, names and times by it."""
    archive, udp = (f"tests/conformance/{part}/test_" for part in ("archive", "udp"))
    suites = [f"{archive}recording.py", f"{udp}publisher_cast.py"]
    process = Process(
        "suites",
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *suites],
        env={"AERON_SPARK_BIN": str(image.root / "bin"), "PEER": "ours"},
        cwd=ROOT,
    )
    assert process.wait_end(timeout=600) == 0, process.report()
    assert re.search(r"\d{2,} passed", process.stdout())
