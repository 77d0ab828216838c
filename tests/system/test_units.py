"""The units of conf/systemd: systemd takes them, and driver and archive work under what they allow.

All of `make test` runs like this with `make sandboxed`.
"""

from __future__ import annotations

import configparser
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit import native, require, sandbox
from tests.kit.manager import Manager
from tests.kit.processes import Process

pytestmark = pytest.mark.interop

ROOT = Path(__file__).resolve().parents[2]
# Out of 10, as `systemd-analyze security` counts; a service that nothing is taken from has 9.6.
MOST_EXPOSURE = 20
# Each start fails until the heartbeat of a killed server is that old (aeron.driver.timeout; the archive's mark file).
HEARTBEAT_S = 10


@pytest.fixture(autouse=True)
def _systemd() -> None:
    require.beyond("systemd-analyze")
    if not os.path.exists("/usr/bin/systemd-analyze"):  # noqa: PTH110
        require.missing("no systemd-analyze: install systemd, for the units' checks")


def analyze(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = ["systemd-analyze", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def sandboxed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    real = {name: native.executable(name) for name in sandbox.PROGRAMS}
    return sandbox.folder(tmp_path_factory.mktemp("sandboxed"), real)


def test_systemd_takes_the_units(tmp_path: Path) -> None:
    for name in sandbox.PROGRAMS:
        text = (sandbox.UNITS / f"{name}.service").read_text("utf-8")
        (tmp_path / f"{name}.service").write_text(
            text.replace("/opt/aeron_spark/bin", str(native.executable(name).parent))
        )
    checked = analyze("verify", "--man=no", *(tmp_path / f"{name}.service" for name in sandbox.PROGRAMS))
    ours = [line for line in checked.stderr.splitlines() if "aeron-spark" in line]
    assert (checked.returncode, ours) == (0, [])


@pytest.mark.parametrize("name", sandbox.PROGRAMS)
def test_the_starts_outlast_the_heartbeat_of_a_killed_server(name: str) -> None:
    """Starts that come faster than systemd's limit, by default 5 in 10 s, leave the unit failed for good."""
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.read(sandbox.UNITS / f"{name}.service", "utf-8")
    pause_s = unit.getfloat("Service", "RestartSec")
    limit_s = unit.getfloat("Unit", "StartLimitIntervalSec", fallback=10)
    starts = unit.getint("Unit", "StartLimitBurst", fallback=5)
    assert unit["Service"]["Restart"] == "on-failure"
    assert starts * pause_s > min(limit_s, HEARTBEAT_S)


@pytest.mark.parametrize("name", sandbox.PROGRAMS)
def test_the_units_leave_little_open(name: str) -> None:
    unit = sandbox.UNITS / f"{name}.service"
    judged = analyze("security", "--offline=yes", f"--threshold={MOST_EXPOSURE}", unit)
    assert judged.returncode == 0, judged.stdout[-400:]


@pytest.mark.parametrize("call", ["ptrace", "setuid", "unshare", "mount", "bpf", "init_module"])
def test_the_units_refuse(call: str) -> None:
    for name in sandbox.PROGRAMS:
        allowed = sandbox.allowed_calls(name)
        assert call not in allowed
        assert {"mmap", "sendmmsg", "epoll_wait", "fdatasync", "clone3"} <= allowed


def test_a_call_beyond_the_unit_ends_the_process(tmp_path: Path) -> None:
    facts = sandbox.folder(tmp_path, {name: Path(sys.executable) for name in sandbox.PROGRAMS})
    tried = subprocess.run(
        [facts / "aeron-spark-driver", "-c", "import ctypes; ctypes.CDLL(None).unshare(0x10000000)"], check=False
    )
    assert tried.returncode in {-31, 128 + 31}  # SIGSYS


def test_servers_report_under_their_units(
    sandboxed: Path, aeron_dir: Path, archive_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Type=notify and WatchdogSec: without the reports systemd would end them."""
    for name in sandbox.PROGRAMS:
        asked = sandbox.settings(name)
        assert (asked["Type"], asked["WatchdogSec"]) == (["notify"], ["30"])
    with Manager(tmp_path, monkeypatch) as manager:
        with native.driver(aeron_dir, folder=sandboxed):
            assert manager.reports("READY=1") == [f"READY=1\nSTATUS=serves {aeron_dir}, threads SHARED"]
            monkeypatch.delenv("WATCHDOG_USEC")
            with native.archive(aeron_dir, archive_dir, folder=sandboxed):
                assert "STATUS=records in" in manager.reports("READY=1")[-1]
        assert manager.reports("STOPPING=1")[-1] == "STOPPING=1\nSTATUS=SIGTERM"


def test_servers_pass_under_their_units(sandboxed: Path) -> None:
    archive, udp = (f"tests/conformance/{part}/test_" for part in ("archive", "udp"))
    suites = [f"{archive}recording.py", f"{archive}maintenance.py", f"{archive}sessions.py", f"{udp}publisher_cast.py"]
    process = Process(
        "suites",
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *suites],
        env={"AERON_SPARK_BIN": str(sandboxed), "PEER": "ours"},
        cwd=ROOT,
    )
    assert process.wait_end(timeout=600) == 0, process.report()
    assert re.search(r"\d{2,} passed", process.stdout())
