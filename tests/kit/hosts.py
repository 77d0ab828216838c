"""Hosts with cables between them, as network namespaces of this machine; what they share is shared memory.

A process that runs on a host has the host's network and nothing else of its own: a client of a driver there can stay here.
With `Host.alone` it has shared memory of its own as well, which its children share.
Needs root and Debian's iproute2.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.kit import require

_numbers = itertools.count()
# `ip netns exec` shows a file of this folder as the one in /etc.
_ETC = Path("/etc/netns")


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A namespace with one interface, `eth`, beside the loopback one."""

    name: str
    address: str

    @property
    def prefix(self) -> tuple[str, ...]:
        """The prefix of a command that runs here."""
        return ("ip", "netns", "exec", self.name)

    @property
    def alone(self) -> tuple[str, ...]:
        """As `prefix`, for a process that shall not see the shared memory of others, nor they its own."""
        # `ip netns exec` has made a mount namespace already, for /sys and /etc.
        return (*self.prefix, "sh", "-c", 'mount -t tmpfs none /dev/shm && exec "$@"', "sh")

    def kill_all(self) -> None:
        """Kill every process here: the machine is gone."""
        pids = subprocess.run(["ip", "netns", "pids", self.name], capture_output=True, text=True, check=False).stdout  # noqa: S607
        for pid in map(int, pids.split()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def ip(self, *arguments: str) -> None:
        """Run `ip` here."""
        _ip("-n", self.name, *arguments)

    def cut_cable(self) -> None:
        """Take the interface down."""
        self.ip("link", "set", "eth", "down")

    def mend_cable(self) -> None:
        """Bring it up again, the route to groups included: that one went with it."""
        self.ip("link", "set", "eth", "up")
        self.ip("route", "replace", "224.0.0.0/4", "dev", "eth")

    def change_address(self, address: str) -> None:
        """Give up the address for another one of the same network."""
        self.ip("address", "del", f"{self.address}/24", "dev", "eth")
        self.ip("address", "add", f"{address}/24", "dev", "eth")
        self.mend_cable()

    def name_host(self, name: str, address: str) -> None:
        """Set the address of `name` here; running processes see it, too."""
        (_ETC / self.name / "hosts").write_text(f"127.0.0.1 localhost\n{address} {name}\n")


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)  # noqa: S607
    if done.returncode != 0:
        raise OSError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")


def _close(name: str) -> None:
    with suppress(OSError):
        _ip("netns", "delete", name)
    shutil.rmtree(_ETC / name, ignore_errors=True)
    with suppress(OSError):
        _ETC.rmdir()


@contextmanager
def two(*, mtu: int = 1500) -> Iterator[tuple[Host, Host]]:
    """Two hosts, 10.77.0.1 and 10.77.0.2, for the length of a `with` block; skips aloud where that is not permitted."""
    with _namespaces(2) as (one, other):
        _ip("-n", one.name, "link", "add", "eth", "type", "veth", "peer", "name", "eth", "netns", other.name)
        for host in (one, other):
            _set_up(host, mtu)
        yield one, other


@contextmanager
def several(count: int, *, mtu: int = 1500) -> Iterator[list[Host]]:
    """Hosts 10.77.0.1 and so on, on one switch; whatever runs there at the end is killed."""
    with _namespaces(count + 1) as (*hosts, switch):
        switch.ip("link", "add", "bridge", "type", "bridge")
        switch.ip("link", "set", "bridge", "up")
        for number, host in enumerate(hosts):
            port = f"port{number}"
            host.ip("link", "add", "eth", "type", "veth", "peer", "name", port, "netns", switch.name)
            switch.ip("link", "set", port, "mtu", str(mtu), "master", "bridge", "up")
            _set_up(host, mtu)
        try:
            yield hosts
        finally:
            for host in hosts:
                host.kill_all()


@contextmanager
def _namespaces(count: int) -> Iterator[list[Host]]:
    require.beyond("a network namespace")
    if shutil.which("ip") is None:
        require.missing("no ip on PATH: install iproute2 for tests between hosts")
    stem = f"as-{os.getpid()}-{next(_numbers)}"
    hosts = [Host(name=f"{stem}-{which}", address=f"10.77.0.{which}") for which in range(1, count + 1)]
    try:
        try:
            for host in hosts:
                _ip("netns", "add", host.name)
        except OSError as error:
            require.missing(f"tests between hosts need network namespaces, so run them as root ({error})")
        yield hosts
    finally:
        for host in hosts:
            _close(host.name)


def _set_up(host: Host, mtu: int) -> None:
    (_ETC / host.name).mkdir(parents=True)
    host.name_host(host.name, host.address)
    host.ip("link", "set", "lo", "up")
    host.ip("link", "set", "eth", "mtu", str(mtu))
    host.ip("address", "add", f"{host.address}/24", "dev", "eth")
    host.mend_cable()
