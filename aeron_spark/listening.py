"""Where a server of this package listens, and by which names it is asked: HOST:PORT, loopback, a Host header."""

from __future__ import annotations

import ipaddress

from aeron_spark.errors import UsageError

_MAX_PORT = 65535


def parse_address(text: str, example: str) -> tuple[str, int]:
    """HOST:PORT, the host of IPv6 in brackets; UsageError for anything else, with the example."""
    host, _, port = text.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not host or not (port.isascii() and port.isdecimal()) or int(port) > _MAX_PORT:
        raise UsageError(f"{text!r} is no HOST:PORT to listen on, for example {example}")
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it, or means itself by it."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def host_of(header: str) -> str:
    """The host of a Host header, without its port."""
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]


def url_of(host: str, port: int, path: str) -> str:
    """The http URL of a path there."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{path}"
