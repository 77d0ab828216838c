"""docs/security.md, "Encryption": a stream through the WireGuard tunnel of the page's commands; unreadable on the path."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from aeron_spark import Client
from tests.kit import dirs, hosts, native, require
from tests.kit.hosts import Host
from tests.kit.pages import block, placed
from tests.kit.processes import Process
from tests.kit.wait import wait_until

pytestmark = pytest.mark.interop

MESSAGE = b"to be read by the subscriber alone"
# Writes every frame that passes the host's interface to a file, after a line that says that it listens.
LISTEN = """
import socket, sys
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
wire.bind(("eth", 0))
print("listening", flush=True)
with open(sys.argv[1], "wb", buffering=0) as seen:
    while True:
        seen.write(wire.recv(65536))
"""
END = b"what was sent before has passed"
SEND = "import socket, sys; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(sys.argv[2].encode(), (sys.argv[1], 9))"


def run(host: Host, folder: Path, script: str) -> None:
    """A script of the page on a host, where the folder of WireGuard's control sockets is the host's own."""
    folder.mkdir(exist_ok=True)
    process = Process("page", [*host.prefix, "sh", "-euc", script], cwd=folder)
    assert process.wait_end(timeout=30) == 0, process.report()


@pytest.fixture
def tunnel(tmp_path: Path) -> Iterator[tuple[Host, Host]]:
    """Two hosts whose tunnel was made by the page's blocks, those of the other host with the addresses exchanged."""
    require.beyond("wireguard")
    if not (shutil.which("wg") and shutil.which("wireguard-go")):
        require.missing("no wg or wireguard-go on PATH: install wireguard-tools and wireguard-go")
    keys, set_up = block("security.md", "text", "wg genkey"), block("security.md", "text", "ip link add wg0")
    with hosts.two() as (one, other), ExitStack() as stack:
        folders = {one.name: tmp_path / "one", other.name: tmp_path / "other"}
        for host in (one, other):
            run(host, folders[host.name], keys)
        # An interface and its control socket have a name of the test's: those sockets are in one folder for all hosts.
        for host, peer, mine, far in ((one, other, 1, 2), (other, one, 2, 1)):
            name = f"wg-{host.name[-10:]}"
            shutil.copy(folders[peer.name] / "wg.pub", folders[host.name] / "other.pub")
            script = placed(
                set_up,
                {
                    "ip link add wg0 type wireguard": f"wireguard-go {name}",
                    "wg0": name,
                    "10.9.0.2/32": f"10.9.0.{far}/32",
                    "10.0.0.2:51820": f"{peer.address}:51820",
                    "10.9.0.1/24": f"10.9.0.{mine}/24",
                },
            )
            stack.callback(host.ip, "link", "delete", name)  # ends its process
            run(host, folders[host.name], script)
        yield one, other


@pytest.mark.parametrize("way", ["tunnel", "open"])
def test_a_stream_through_the_tunnel(tunnel: tuple[Host, Host], way: str, tmp_path: Path) -> None:
    one, other = tunnel
    address = {"tunnel": "10.9.0.2", "open": other.address}[way]
    channel = f"aeron:udp?endpoint={address}:40123|mtu=1344"
    with ExitStack() as stack:
        listener = Process("listener", [*other.prefix, sys.executable, "-Ic", LISTEN, tmp_path / "seen"])
        wait_until(lambda: "listening" in listener.stdout(), 10, "the listener")
        clients = []
        for host in (one, other):
            directory = stack.enter_context(dirs.fresh(host.name))
            stack.callback(native.driver(directory, prefix=host.prefix).stop)
            clients.append(stack.enter_context(Client(aeron_dir=directory)))
        publisher, subscriber = clients
        subscription = subscriber.add_subscription(channel, 7)
        publication = publisher.add_exclusive_publication(channel, 7)
        publication.wait_connected(20)
        publication.offer(MESSAGE)
        got: list[bytes] = []
        wait_until(lambda: subscription.poll(lambda message, _: got.append(message)) and got, 20, "the message")
        sender = Process("sender", [*one.prefix, sys.executable, "-Ic", SEND, other.address, END.decode()])
        assert sender.wait_end(timeout=30) == 0, sender.report()
        seen = tmp_path / "seen"
        wait_until(lambda: END in seen.read_bytes(), 20, "the listener to see what came after the message")
        listener.stop()
    assert got == [MESSAGE]
    # The way that is open shows that the listener would have seen it.
    assert (MESSAGE in seen.read_bytes()) == (way == "open")
