"""What `aeron-spark doctor` finds: each check over facts of an invented machine, and one run on this one."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from aeron_spark import Client, MediaDriver, doctor, doctor_facts, doctor_memory
from aeron_spark.archive.server import ArchiveServer
from aeron_spark.archive.tools import MarkFile
from aeron_spark.archive_health import ArchiveFacts, archive_facts
from aeron_spark.cli.__main__ import main, parser
from aeron_spark.directory_facts import DirectoryFacts
from aeron_spark.doctor import Finding
from aeron_spark.doctor_facts import DriverFacts, Facts, ProcessFacts, PythonFacts
from aeron_spark.errors import UsageError
from tests.kit import packed, ports
from tests.kit.wait import wait_until

GIB = 1 << 30

DRIVER = DriverFacts(
    pid=7,
    is_active=True,
    heartbeat_age_ms=12,
    cnc_version=0x000200,
    software="version=1.52.0 commit=abc",
    publications=2,
    network_publications=1,
    images=1,
)
DIRECTORY = DirectoryFacts(
    about="directory",
    path=Path("/dev/shm/aeron-somebody"),  # noqa: S108 - never made
    link_target="",
    owner="somebody",
    group="people",
    mode=0o755,
    parent_mode=0o1777,
    trouble="",
)
WELL = Facts(
    aeron_dir=Path("/dev/shm/aeron-somebody"),  # noqa: S108 - never made
    user="somebody",
    dir_owner="somebody",
    dir_is_writable=True,
    parent_is_writable=True,
    driver=DRIVER,
    driver_trouble="",
    package_version="1.0",
    native_version="1.0",
    shm_total=8 * GIB,
    shm_free=6 * GIB,
    rmem_max=4 << 20,
    wmem_max=4 << 20,
    cores=8,
    java_path="/usr/bin/java",
    java_version=17,
    java_is_bundled=False,
    python_version=(3, 11),
    pythons=[PythonFacts(variable="PYSPARK_PYTHON", path="/usr/bin/python3", version=(3, 11))],
    pyspark_version="4.2.0",
    memlock_bytes=None,
    open_files=65536,
    archive_port_in_use="",
    directories=[DIRECTORY, dataclasses.replace(DIRECTORY, mode=0o1777)],
)


def can_be_typed(remedy: str) -> bool:
    """Whether a shell runs programs that exist, with options that ours take."""
    for command in remedy.partition("  # ")[0].split(";"):
        words = shlex.split(command)
        if words[0] == "sudo":
            words = words[3:] if words[1] == "-u" else words[1:]
        if words[0] == "aeron-spark":
            parser().parse_args(words[1:])
        elif words[0] not in {
            *("chmod", "export", "install", "ip", "mount", "pip", "rm", "ss", "sysctl", "ulimit", "unset")
        }:
            return False
    return True


STRANGE = "/dev/shm/x y;touch 'owned' $(true) # no"  # noqa: S108 - never made


def of_strange_names(name: str) -> list[Finding]:
    """What has a name in its remedy: the directories, their owners, the user, the archive's folder."""
    path = Path(name)
    archive = dataclasses.replace(
        ARCHIVE, folder=path, owner=name, trouble="damaged", free_bytes=0, is_open_to_all=True
    )
    found = []
    for changes in (
        {"driver": None},
        {"driver": None, "driver_trouble": "no magic"},
        {"driver": None, "driver_trouble": "no magic", "dir_is_writable": False},
        {"driver": None, "dir_owner": None, "parent_is_writable": False},
        {"shm_total": 64 << 20, "shm_free": 32 << 20},
        {"settings": {"aeron.rcv.initial.window.length": "2m"}},
        {"settings": {"aeron.threading.mode": "FAST"}},
        {"archive": archive},
        {"archive": dataclasses.replace(archive, is_readable=False, is_writable=False)},
        {"archive": dataclasses.replace(archive, is_writable=False, exists=False)},
        *(
            {"directories": [dataclasses.replace(DIRECTORY, path=path / "below", owner=name, **strange)]}
            for strange in ({"trouble": "x"}, {"trouble": "x", "link_target": name}, {"trouble": "x", "mode": 0o777})
        ),
        {"directories": [dataclasses.replace(DIRECTORY, path=path / "below", mode=0o777, parent_mode=0o777)]},
    ):
        found += findings(**{"aeron_dir": path, "user": name, "dir_owner": name, **changes})
    return found


def test_a_remedy_has_each_name_as_one_word() -> None:
    found = of_strange_names(STRANGE)
    assert len({finding.remedy for finding in found}) > 15
    for finding in found:
        words = shlex.split(finding.remedy)
        assert any(STRANGE in word for word in words), finding.remedy
        assert not {"y", "owned", "touch", "$(true)"} & set(words)


def test_names_with_control_characters_are_in_no_remedy_and_escaped() -> None:
    found = of_strange_names("/dev/shm/x\x1b]0;owned\x07\ntouch owned\n")  # noqa: S108 - never made
    software = dataclasses.replace(DRIVER, software="1\x1b[2J")
    found += [one for one in doctor.check(dataclasses.replace(WELL, driver=software)) if one.about == "driver"]
    assert "1\\u001b[2J" in found[-1].text
    for finding in found:
        assert finding.text.isprintable()
        assert finding.level == "ok" or finding.remedy == "# a name has control characters, so no command is given"


def findings(**changes: Any) -> list[Finding]:
    return [finding for finding in doctor.check(dataclasses.replace(WELL, **changes)) if finding.level != "ok"]


def test_a_healthy_machine_has_no_findings() -> None:
    found = doctor.check(WELL)
    assert {finding.level for finding in found} == {"ok"}
    assert {finding.about for finding in found} == {
        *("versions", "directory", "driver", "shared memory", "sockets", "threads", "limits", "java", "python")
    }


@pytest.mark.parametrize(
    ("changes", "level", "text", "remedy"),
    [
        ({"native_version": None}, "error", "was not found", "AERON_SPARK_BIN"),
        ({"native_version": "0.9"}, "warn", "package 1.0, aeron-spark-driver 0.9", "AERON_SPARK_BIN"),
        ({"dir_owner": "root", "dir_is_writable": False}, "error", "belongs to root", "umask 0"),
        (
            {"directories": [dataclasses.replace(DIRECTORY, trouble="belongs to eve")]},
            "error",
            "to eve",
            "DIR_OWNER=somebody",
        ),
        (
            {"directories": [dataclasses.replace(DIRECTORY, trouble="is a link", link_target="/dev/shm/x")]},  # noqa: S108
            "error",
            "is a link",
            "export AERON_DIR=/dev/shm/x",
        ),
        (
            {"directories": [dataclasses.replace(DIRECTORY, trouble="is open", mode=0o777)]},
            "error",
            "is open",
            "chmod o-w",
        ),
        (
            {"directories": [dataclasses.replace(DIRECTORY, mode=0o775)]},
            "warn",
            "the group people can write",
            "chmod go-w",
        ),
        (
            {"directories": [dataclasses.replace(DIRECTORY, mode=0o777)]},
            "warn",
            "every user of the machine can write",
            "chmod",
        ),
        (
            {"directories": [dataclasses.replace(DIRECTORY, parent_mode=0o777)]},
            "warn",
            "in the place of",
            "chmod +t /dev/shm",
        ),
        (
            {"dir_owner": None, "driver": None, "parent_is_writable": False},
            "error",
            "somebody may not make it",
            "aeron-spark driver --dir /dev/shm/aeron-somebody",
        ),
        ({"driver": None}, "warn", "none was started", "aeron-spark driver --dir"),
        (
            {"settings": {"aeron.archive.control.channel": "aeron:udp?endpoint=10.0.0.1:8010"}},
            "warn",
            "everybody who reaches aeron:udp?endpoint=10.0.0.1:8010 may ask",
            "aeron-spark archive user NAME",
        ),
        (
            {
                "settings": {
                    "aeron.archive.control.channel": "aeron:udp?term-length=64k|endpoint=[fd00::1]:8010",
                    "aeron.spark.archive.credentials.file": "archive.users",
                    "aeron.spark.archive.control.response.anywhere": "true",
                }
            },
            "warn",
            "makes the archive answer anywhere",
            "unset AERON_SPARK_ARCHIVE_CONTROL_RESPONSE_ANYWHERE",
        ),
        (
            {"driver": None, "driver_trouble": "version 9.0.0"},
            "error",
            "version 9.0.0",
            "rm -r /dev/shm/aeron-somebody",
        ),
        (
            {"driver": dataclasses.replace(DRIVER, is_active=False, heartbeat_age_ms=61_000)},
            "warn",
            "its heartbeat is 61.0 s old",
            "aeron-spark driver --dir",
        ),
        (
            {"driver": dataclasses.replace(DRIVER, is_active=False, heartbeat_age_ms=None)},
            "warn",
            "ended in order",
            "aeron-spark driver --dir",
        ),
        ({"shm_total": 64 << 20, "shm_free": 32 << 20}, "error", "32 MiB of 64 MiB free", "--shm-size"),
        ({"shm_total": GIB, "shm_free": 100 << 20}, "warn", "100 MiB of 1 GiB free", "mount -o remount,size="),
        (
            {"settings": {"aeron.ipc.term.buffer.length": "1g", "aeron.term.buffer.length": "1g"}, "shm_free": 2 * GIB},
            "error",
            "up to 3 GiB over UDP",
            "aeron.term.buffer.length=1m",
        ),
        ({"shm_total": 250 << 20, "shm_free": 245 << 20}, "warn", "245 MiB of 250 MiB free", "remount"),
        (
            {"settings": {"aeron.socket.so_rcvbuf": "64m"}},
            "warn",
            "net.core.rmem_max is 4 MiB",
            "sysctl -w net.core.rmem_max=67108864",
        ),
        (
            {"settings": {"aeron.socket.so_sndbuf": "8m"}},
            "warn",
            "net.core.wmem_max is 4 MiB",
            "sysctl -w net.core.wmem_max=8388608",
        ),
        (
            {"settings": {"aeron.rcv.initial.window.length": "2m"}},
            "error",
            "2 MiB is more than a receive buffer holds (128 KiB)",
            "aeron.socket.so_rcvbuf=2097152",
        ),
        (
            {"settings": {"aeron.mtu.length": "8k", "aeron.rcv.initial.window.length": "4k"}},
            "error",
            "less than one datagram",
            "window.length=128k",
        ),
        (
            {
                "settings": {"aeron.rcv.initial.window.length": "1m", "aeron.socket.so_rcvbuf": "0"},
                "rcvbuf_default": 212_992,
            },
            "error",
            "1 MiB is more than a receive buffer holds (208 KiB)",
            "aeron.socket.so_rcvbuf=1048576",
        ),
        ({"rmem_max": 212_992}, "warn", "208 KiB at most", "net.core.rmem_max=4194304"),
        (
            {
                "cores": 2,
                "settings": {
                    "aeron.threading.mode": "SHARED_NETWORK",
                    "aeron.conductor.idle.strategy": "noop",
                    "aeron.sharednetwork.idle.strategy": "spin",
                },
            },
            "error",
            "2 of them never rest, 2 cores",
            "-D aeron.conductor.idle.strategy=backoff -D aeron.sharednetwork.idle.strategy=backoff",
        ),
        ({"settings": {"aeron.threading.mode": "FAST"}}, "error", "FAST is none of", "threading.mode=SHARED"),
        ({"settings": {"aeron.mtu.length": "much"}}, "error", "aeron.mtu.length=much is no length", "correct"),
        ({"settings": {"aeron.mtu.length": "8 k"}}, "error", "aeron.mtu.length=8 k is no length", "correct"),
        ({"settings": {"aeron.term.buffer.length": "1t"}}, "error", "aeron.term.buffer.length=1t is no", "correct"),
        (
            {"settings": {"aeron.term.buffer.length": "9999999999g"}},
            "error",
            "9999999999g is no length of 64",
            "correct",
        ),
        (
            {
                "settings": {"aeron.archive.control.channel": "aeron:udp?endpoint=127.0.0.1:99999"},
                "archive_endpoint_trouble": "127.0.0.1:99999 has a port above 65535",
            },
            "error",
            "127.0.0.1:99999 has a port above 65535; no archive starts",
            "ip -brief address",
        ),
        ({"open_files": 1024}, "warn", "1024 open files", "ulimit -n 4096"),
        (
            {"processes": [ProcessFacts(name="archive", pid=8, open_files=767, open_files_max=1024)]},
            "warn",
            "archive, pid 8: 767 of 1024 files are open",
            "LimitNOFILE=4096",
        ),
        (
            {"processes": [ProcessFacts(name="driver", pid=7, open_files=6144, open_files_max=8192)]},
            "error",
            "driver, pid 7: 6144 of 8192 files are open: recordings are refused soon",
            "ulimit -n 4096",
        ),
        ({"java_path": None, "java_version": None}, "warn", "none was found", "&& export JAVA_HOME="),
        ({"java_version": 11}, "error", "is version 11", "&& export JAVA_HOME="),
        ({"java_version": None}, "error", "does not tell its version", "export JAVA_HOME="),
        ({"java_is_bundled": True}, "warn", "Spark finds it by JAVA_HOME alone", "export JAVA_HOME="),
        (
            {"java_version": 25, "pyspark_version": "4.1.4"},
            "error",
            'version 25, on which pyspark 4.1.4 does not start ("getSubject is not supported")',
            "pip install 'pyspark>=4.2'",
        ),
        ({"pyspark_version": None}, "warn", "the Spark source does not", "pip install"),
        (
            {"pythons": [PythonFacts(variable="PYSPARK_DRIVER_PYTHON", path="/opt/py", version=(3, 12))]},
            "error",
            "PYSPARK_DRIVER_PYTHON=/opt/py is Python 3.12, this is 3.11",
            f"export PYSPARK_DRIVER_PYTHON={sys.executable}",
        ),
        (
            {"pythons": [PythonFacts(variable="PYSPARK_PYTHON", path="gone", version=None)]},
            "error",
            "PYSPARK_PYTHON=gone can't be run",
            "export PYSPARK_PYTHON=",
        ),
        (
            {
                "settings": {"aeron.archive.control.channel": "aeron:udp?endpoint=localhost:8010"},
                "archive_port_in_use": "localhost:8010",
            },
            "warn",
            "localhost:8010 of aeron.archive.control.channel is in use",
            "ss -lunp | grep :8010",
        ),
    ],
)
def test_a_finding_has_its_remedy(changes: dict[str, Any], level: str, text: str, remedy: str) -> None:
    (found,) = findings(**changes)
    assert found.level == level
    assert text in found.text
    assert remedy in found.remedy
    assert found.about == "settings" or can_be_typed(found.remedy)


@pytest.mark.parametrize(
    "settings",
    [
        {"aeron.archive.control.channel": "aeron:udp?endpoint=localhost:8010"},
        {"aeron.archive.control.channel": "aeron:udp?endpoint=[::1]:8010"},
        {
            "aeron.archive.control.channel": "aeron:udp?endpoint=10.0.0.1:8010",
            "aeron.archive.control.channel.enabled": "false",
        },
        {
            "aeron.archive.control.channel": "aeron:udp?endpoint=10.0.0.1:8010",
            "aeron.spark.archive.credentials.file": "archive.users",
        },
    ],
)
def test_archives_that_strangers_do_not_command(settings: dict[str, str]) -> None:
    assert findings(settings=settings) == []


def test_threads_that_rest_share_cores() -> None:
    assert not findings(cores=1)


def test_what_can_not_be_told_is_no_finding() -> None:
    assert findings(shm_total=None, shm_free=None, rmem_max=None, wmem_max=None) == []


def test_names_that_are_nearly_settings() -> None:
    given = [
        "aeron.threding.mode=SHARED",
        "aeron.threading.mode=SHARED",
        "aeron.archive.segment.file.lenght=1m",
        "my.own=1",
    ]
    facts = doctor_facts.gather(
        defines=given,
        environment={"AERON_TERM_BUFER_LENGTH": "1m", "AERON_CLIENT_NAME": "me", "AERON_SPARK_BIN": "/opt"},
    )
    assert facts.misspelt == {
        "aeron.threding.mode": "aeron.threading.mode",
        "aeron.archive.segment.file.lenght": "aeron.archive.segment.file.length",
        "AERON_TERM_BUFER_LENGTH": "AERON_TERM_BUFFER_LENGTH",
    }
    found = [finding for finding in doctor.check(facts) if finding.about == "settings"]
    assert len(found) == 3
    assert found[0].level == "warn"
    assert found[0].remedy == "write aeron.threading.mode"


def test_settings_as_the_driver_takes_them(tmp_path: Path) -> None:
    file = tmp_path / "driver.properties"
    file.write_text("# a comment\naeron.mtu.length = 4k\naeron.threading.mode:SHARED\n! another\n\n", "utf-8")
    environment = {"AERON_MTU_LENGTH": "1k", "AERON_TERM_BUFFER_LENGTH": "1m", "AERON_DIR": "/somewhere"}
    assert doctor_facts.read_settings(["aeron.mtu.length=2k"], [], environment)["aeron.mtu.length"] == "2k"
    assert doctor_facts.read_settings(["aeron.mtu.length=2k"], [str(file)], environment) == {
        "aeron.dir": "/somewhere",
        "aeron.mtu.length": "4k",
        "aeron.term.buffer.length": "1m",
        "aeron.threading.mode": "SHARED",
    }
    with pytest.raises(UsageError, match="no NAME=VALUE"):
        doctor_facts.read_settings(["aeron.mtu.length"], [], {})
    with pytest.raises(UsageError, match="gone"):
        doctor_facts.read_settings([], [str(tmp_path / "gone")], {})


TERMS = ("aeron.ipc.term.buffer.length=64k", "aeron.term.buffer.length=128k")


def test_memory_is_what_streams_take(aeron_dir: Path) -> None:
    """The plan's parts are the lengths of the files that a driver makes for as many streams."""
    settings = {"aeron.threading.mode": "SHARED", **dict(one.split("=") for one in TERMS)}
    with MediaDriver(aeron_dir, settings=settings), Client(aeron_dir) as client:
        own = sum((aeron_dir / name).stat().st_size for name in ("cnc.dat", "loss-report.dat"))
        opened = [client.add_publication("aeron:ipc", stream) for stream in range(3)]
        ipc = sum(path.stat().st_size for path in aeron_dir.rglob("*.logbuffer"))
        channel = f"aeron:udp?endpoint=localhost:{ports.free_port()}"
        with client.add_subscription(channel, 7) as subscription:
            opened.append(client.add_publication(channel, 7))
            wait_until(lambda: subscription.is_connected, 10, "the image")
            udp = sum(path.stat().st_size for path in aeron_dir.rglob("*.logbuffer")) - ipc
        for publication in opened:
            publication.close()
    none = ("aeron.archive.max.concurrent.replays=0", "aeron.low.file.store.warning.threshold=0")
    over_ipc, _, both_ends = doctor_memory.plans(3, defines=[*TERMS, *none], environment={})
    assert over_ipc.total_bytes == own + ipc
    (_, _, one_stream) = doctor_memory.plans(1, defines=[*TERMS, *none], environment={})
    assert one_stream.total_bytes == own + udp
    assert both_ends.total_bytes == own + 3 * udp


def test_memory_by_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--for-streams", "100", *(f"-D{one}" for one in TERMS)]) == 0
    out = capsys.readouterr().out
    assert re.findall(r"^(100 streams .*): ", out, re.MULTILINE) == [
        "100 streams over IPC",
        "100 streams over UDP, one end here",
        "100 streams over UDP, both ends here",
    ]
    assert "19.14 MiB  publications (100 x 196 KiB)" in out
    sizes = re.findall(r"sizeLimit: (\d+)Mi, --shm-size=(\d+)m, mount -o size=(\d+)m", out)
    assert main(["doctor", "--json", "--for-streams", "100", *(f"-D{one}" for one in TERMS)]) == 0
    plans = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [f"{size}Mi" for size, *others in sizes if {size} == set(others)] == [plan["size"] for plan in plans]
    for plan in plans:
        assert sum(part["count"] * part["each_bytes"] for part in plan["parts"]) == plan["total_bytes"]
        assert 0 <= (int(plan["size"][:-2]) << 20) - plan["total_bytes"] < 1 << 20
    assert main(["doctor", "--for-streams", "0"]) != 0
    assert "at least one stream" in capsys.readouterr().err


def test_this_machine(driver: MediaDriver, capsys: pytest.CaptureFixture[str]) -> None:
    facts = doctor_facts.gather(driver.aeron_dir, environment={"PYSPARK_PYTHON": sys.executable})
    assert facts.driver is not None
    assert facts.driver.is_active
    assert facts.driver.pid == driver.pid
    assert "1.52.0" in facts.driver.software
    assert facts.native_version == facts.package_version
    assert [python.version for python in facts.pythons] == [sys.version_info[:2]]
    assert facts.dir_owner is not None
    assert facts.dir_is_writable
    assert facts.shm_total
    (process,) = [process for process in facts.processes if process.pid == driver.pid]
    assert process.name.startswith("driver")
    assert 3 < process.open_files < process.open_files_max
    # Machines differ in what else is found; that the driver lives is an "ok" on each, and an error is never without remedy.
    code = main(["doctor", "--dir", str(driver.aeron_dir), "--json"])
    found = [Finding(**json.loads(line)) for line in capsys.readouterr().out.splitlines()]
    assert code == (1 if any(finding.level == "error" for finding in found) else 0)
    assert [finding.level for finding in found if finding.about == "driver"] == ["ok"]
    assert all(finding.remedy for finding in found if finding.level != "ok")
    assert main(["doctor", "--dir", str(driver.aeron_dir), "-D", "aeron.threading.mode=FAST"]) == 1
    assert re.search(r"^error  threads .*\n +-> aeron-spark driver --dir \S+ -D", capsys.readouterr().out, re.MULTILINE)


def test_foreign_files_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "cnc.dat").write_bytes(b"\x00\x09" * 8192)
    facts = doctor_facts.gather(tmp_path)
    (found,) = doctor.check_driver(facts)
    assert found.level == "error"
    assert str(tmp_path) in found.remedy


ARCHIVE = ArchiveFacts(
    folder=Path("recordings"),
    exists=True,
    owner="root",
    is_readable=True,
    is_writable=True,
    is_open_to_all=False,
    free_bytes=GIB,
    mark=None,
    invalid=(),
    trouble="",
)


def test_the_archives_folder() -> None:
    assert findings(archive=ARCHIVE) == []
    for changes, level, text, remedy in (
        (
            {"invalid": (3, 5)},
            "warn",
            "marked INVALID are listed by no archive and no reader: 3, 5",
            "archive verify recordings",
        ),
        (
            {"is_writable": False},
            "error",
            "can't be written by somebody, it belongs to root",
            "sudo -u root aeron-spark archive run --beside-driver --dir /dev/shm/aeron-somebody --archive-dir recordings",
        ),
        (
            {"is_writable": False, "exists": False},
            "error",
            "can't be made by somebody",
            'sudo install -d -m 0700 -o "$(id -u)" recordings',
        ),
        (
            {"free_bytes": 128 << 20},
            "error",
            "128 MiB are free, and no recording starts",
            "aeron-spark archive retain recordings --older-than 7d",
        ),
        ({"trouble": "no catalog"}, "error", "no catalog", "aeron-spark archive verify recordings"),
        (
            {"trouble": "Permission denied", "is_readable": False},
            "error",
            "Permission denied",
            "sudo -u root aeron-spark archive verify recordings",
        ),
        ({"is_open_to_all": True}, "warn", "open to every user", "chmod o-rwx recordings"),
    ):
        (finding,) = findings(archive=dataclasses.replace(ARCHIVE, **changes))
        assert finding.level == level
        assert text in finding.text
        assert remedy in finding.remedy
        assert can_be_typed(finding.remedy)


def test_a_killed_archive_is_started_with_its_driver_where_none_runs() -> None:
    mark = MarkFile(
        path=Path("recordings/archive-mark.dat"),
        version=0x030100,
        activity_timestamp_ms=1,
        start_timestamp_ms=1,
        pid=7,
        archive_id=1,
        is_live=False,
        control_stream_id=10,
        local_control_stream_id=10,
        events_stream_id=30,
        header_length=8192,
        error_buffer_length=1 << 20,
        control_channel="",
        local_control_channel="aeron:ipc",
        events_channel="",
        aeron_dir="",
    )
    where = "--dir /dev/shm/aeron-somebody --archive-dir recordings"
    (with_driver,) = findings(archive=dataclasses.replace(ARCHIVE, mark=mark))
    assert with_driver.remedy.startswith(f"aeron-spark archive run --beside-driver {where}")
    killed = dataclasses.replace(DRIVER, is_active=False)
    _, without = findings(archive=dataclasses.replace(ARCHIVE, mark=mark), driver=killed)
    assert without.remedy.startswith(f"aeron-spark archive run {where}")


def test_another_users_driver_is_not_deleted() -> None:
    directory, driver = findings(
        dir_owner="root", dir_is_writable=False, driver=None, driver_trouble="cannot open cnc.dat: Permission denied"
    )
    assert directory.about == "directory"
    assert can_be_typed(directory.remedy)
    assert driver.remedy.startswith("sudo -u root aeron-spark doctor --dir /dev/shm/aeron-somebody")
    assert can_be_typed(driver.remedy)


def test_the_archive_of_this_machine(driver: MediaDriver, tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    define = [f"aeron.archive.dir={folder}"]

    def about_folder() -> list[Finding]:
        facts = doctor_facts.gather(driver.aeron_dir, defines=define, environment={})
        return [finding for finding in doctor.check(facts) if finding.about == "archive folder"]

    assert [finding.level for finding in about_folder()] == ["ok"]
    with ArchiveServer(folder, driver.aeron_dir, settings={"aeron.archive.control.channel.enabled": "false"}):
        assert [finding.level for finding in about_folder()] == ["ok"]
    assert [finding.level for finding in about_folder()] == ["ok"]
    mark = folder / "archive-mark.dat"
    with mark.open("r+b") as file:
        file.seek(16)
        file.write((1_700_000_000_000).to_bytes(8, "little"))
    (killed,) = about_folder()
    assert killed.level == "warn"
    assert "was killed or hangs, or this is a copy that was made while it ran" in killed.text
    assert "take another by aeron-spark archive backup" in killed.remedy
    run = f"aeron-spark archive run --beside-driver --dir {driver.aeron_dir} --archive-dir {folder}"
    assert killed.remedy.startswith(run)
    assert can_be_typed(killed.remedy)


def test_a_recording_that_can_not_be(tmp_path: Path) -> None:
    packed.unpack(Path(__file__).parents[1] / "golden" / "archive" / "archive.tar.gz", tmp_path)
    folder = tmp_path / "archive"
    found = archive_facts({"aeron.archive.dir": str(folder)})
    assert found is not None
    assert found.trouble == ""
    with (folder / "archive.catalog").open("r+b") as file:
        file.seek(32 + 72)
        file.write((33).to_bytes(8, "little"))
    found = archive_facts({"aeron.archive.dir": str(folder)})
    assert found is not None
    assert "recording 0 is damaged: startPosition=33" in found.trouble


def test_the_credentials_file(driver: MediaDriver, tmp_path: Path) -> None:
    path = tmp_path / "users"

    def found() -> Finding:
        define = [f"aeron.spark.archive.credentials.file={path}"]
        facts = doctor_facts.gather(driver.aeron_dir, defines=define, environment={})
        (finding,) = [finding for finding in doctor.check(facts) if finding.about == "credentials"]
        return finding

    assert "No such file" in found().text
    path.write_text("alice ...")
    path.chmod(0o640)
    assert found().remedy == f"chmod 600 {path}"
    path.chmod(0o600)
    assert found().level == "ok"


def test_directories_of_this_machine_that_strangers_may_change(tmp_path: Path) -> None:
    aeron_dir, archive_dir, link = tmp_path / "aeron", tmp_path / "archive", tmp_path / "link"
    aeron_dir.mkdir(0o755)
    archive_dir.mkdir(0o755)
    link.symlink_to(aeron_dir)

    def found(where: Path, *defines: str) -> list[str]:
        facts = doctor_facts.gather(where, defines=[f"aeron.archive.dir={archive_dir}", *defines], environment={})
        return [finding.text for finding in doctor.check_strangers(facts)]

    assert found(aeron_dir) == []
    assert found(tmp_path / "none") == []
    assert "symbolic link" in found(link)[0]
    aeron_dir.chmod(0o777)
    archive_dir.chmod(0o777)
    assert ["can be written by every user" in text for text in found(aeron_dir)] == [True, True]
    assert ["change what is there" in text for text in found(aeron_dir, "aeron.spark.dir.writers=all")] == [
        True,
        True,
    ]
    aeron_dir.chmod(0o1777)
    archive_dir.chmod(0o755)
    assert found(aeron_dir) == []
    tmp_path.chmod(0o777)
    assert ["in the place of" in text for text in found(aeron_dir)] == [True, True]
