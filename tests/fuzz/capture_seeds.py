"""First inputs of `fuzz_capture`: a capture of each container and link, with what they carry. Its corpus was grown from them.

python -m tests.fuzz.capture_seeds FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.kit import captures
from tests.kit.captures import LINKS, RAW, data_frame, ipv4, ipv6, setup_frame, tcp, udp

PIECES = (b"\x1f\x00", b"\xff\xff")


def packets() -> list[bytes]:
    """IP packets of each kind."""
    first, second = data_frame(b"one", 0), data_frame(b"two", 64)
    padding = bytearray(data_frame(b"", 128, kind=0))
    padding[:4] = (65_536 - 128).to_bytes(4, "little")
    body = b"\x04\xd2\x23\x28\x00\x0b\x00\x00abc"
    return [
        udp(setup_frame()),
        udp(first + second),
        udp(bytes(padding)),
        udp(b""),
        tcp(b"abcdef", 1),
        tcp(b"", 0, flags=2),
        ipv4(body[:8], 17, "10.0.0.1", "10.0.0.2", ident=1, fragment=0x2000),
        ipv4(body[8:], 17, "10.0.0.1", "10.0.0.2", ident=1, fragment=1),
        ipv4(b"\x08\x00", 1, "10.0.0.1", "10.0.0.2"),
        ipv6(body, 17, "fe80::1", "ff02::2"),
        ipv6(body, 17, "fe80::1", "ff02::2", extensions=b"\x3c\x00" + bytes(6) + b"\x11\x00" + bytes(6)),
        ipv6(body, 17, "fe80::1", "ff02::2", extensions=b"\x2c\x00" + bytes(6) + b"\x11\x00\x00\x01\x00\x00\x00\x07"),
    ]


def seeds(folder: Path) -> None:
    """Write them."""
    file = folder / "capture"
    every = [(10**18 + number, packet) for number, packet in enumerate(packets())]
    inputs = []
    for timed in (every[:6], every[6:]):  # an input has 1,024 bytes at most
        for kind, header in LINKS.values():
            with_link = [(at, header + packet) for at, packet in timed]
            inputs.append(captures.write_pcap(file, with_link, link=kind).read_bytes())
            inputs.append(captures.write_pcapng(file, with_link, link=kind, unit=6).read_bytes())
        inputs.append(captures.write_pcap(file, timed, link=RAW, order=">", nanoseconds=False, snap=40).read_bytes())
        inputs.append(captures.write_pcapng(file, timed, link=RAW, order=">").read_bytes())
    file.unlink()
    for number, content in enumerate(inputs):
        (folder / f"{number:02}").write_bytes(PIECES[number % len(PIECES)] + content)


if __name__ == "__main__":
    seeds(Path(sys.argv[1]))
