"""Two hosts with a cable between them, as network namespaces of this machine; what they share is shared memory.

A process that runs on a host has the host's network and nothing else of its own: a client of a driver there can stay here.
Needs root and Debian's iproute2.
"""

from __future__ import annotations

import itertools
import os
import shutil
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
        """What stands before a command that is to run here."""
        return ("ip", "netns", "exec", self.name)

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
        """What `name` stands for here, from now on; processes that run see it, too."""
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
    if shutil.which("ip") is None:
        require.missing("no ip on PATH: install iproute2 for tests between two hosts")
    stem = f"as-{os.getpid()}-{next(_numbers)}"
    hosts = [Host(name=f"{stem}-{which}", address=f"10.77.0.{which}") for which in (1, 2)]
    try:
        try:
            for host in hosts:
                _ip("netns", "add", host.name)
        except OSError as error:
            require.missing(f"tests between two hosts need network namespaces, so run them as root ({error})")
        one, other = hosts
        _ip("-n", one.name, "link", "add", "eth", "type", "veth", "peer", "name", "eth", "netns", other.name)
        for host in hosts:
            (_ETC / host.name).mkdir(parents=True)
            host.name_host(host.name, host.address)
            host.ip("link", "set", "lo", "up")
            host.ip("link", "set", "eth", "mtu", str(mtu))
            host.ip("address", "add", f"{host.address}/24", "dev", "eth")
            host.mend_cable()
        yield one, other
    finally:
        for host in hosts:
            _close(host.name)
