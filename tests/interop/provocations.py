"""Commands that a driver must refuse, as a table; test_refusals.py gives them to ours and to stock ones.

A row has a name, what is there before, and the command. In channels `{a}`, `{b}` and `{c}` are ports of the row's own and
`{tag}` a number of its own, `{used}` is a port that another process has, `{sndbuf}` the system's default; `{0}`, `{1}`, ...
are the registration ids of the commands before.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field

from tests.kit import commands

UNKNOWN_ID = 987_654_321


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command's type and what follows the two ids, which are the sender's affair."""

    type_id: int
    format: str = ""
    fields: tuple[int | str, ...] = ()  # a text is the name of an id: "0" is the first command's before
    channel: str | None = None
    tail: bytes = b""

    def body(self, names: dict[str, int], stream: int) -> bytes:
        """The bytes behind the two ids."""
        values = {**names, "stream": stream}
        fields = (values[one] if isinstance(one, str) else one for one in self.fields)
        head = struct.pack(f"<{self.format}", *fields)
        if self.channel is None:
            return head + self.tail
        # Interfaces have braces, too, around their names.
        text = re.sub(r"\{(\w+)\}", lambda name: str(values.get(name[1], name[0])), self.channel).encode()
        return head + struct.pack("<i", len(text)) + text


def pub(channel: str) -> Command:
    return Command(type_id=commands.ADD_PUBLICATION, format="i", fields=("stream",), channel=channel)


def xpub(channel: str) -> Command:
    return Command(type_id=commands.ADD_EXCLUSIVE_PUBLICATION, format="i", fields=("stream",), channel=channel)


def sub(channel: str) -> Command:
    return Command(type_id=commands.ADD_SUBSCRIPTION, format="qi", fields=(-1, "stream"), channel=channel)


def unpub(of: int | str) -> Command:
    return Command(type_id=commands.REMOVE_PUBLICATION, format="qq", fields=(of, 0))


def unsub(of: int | str) -> Command:
    return Command(type_id=commands.REMOVE_SUBSCRIPTION, format="q", fields=(of,))


def uncounter(of: int | str) -> Command:
    return Command(type_id=commands.REMOVE_COUNTER, format="q", fields=(of,))


def dest(of: int | str, channel: str) -> Command:
    return Command(type_id=commands.ADD_DESTINATION, format="q", fields=(of,), channel=channel)


def undest(of: int | str, channel: str) -> Command:
    return Command(type_id=commands.REMOVE_DESTINATION, format="q", fields=(of,), channel=channel)


def undest_by_id(of: int | str, destination: int | str) -> Command:
    return Command(type_id=commands.REMOVE_DESTINATION_BY_ID, format="qq", fields=(of, destination))


def rdest(of: int | str, channel: str) -> Command:
    return Command(type_id=commands.ADD_RCV_DESTINATION, format="q", fields=(of,), channel=channel)


def unrdest(of: int | str, channel: str) -> Command:
    return Command(type_id=commands.REMOVE_RCV_DESTINATION, format="q", fields=(of,), channel=channel)


def counter(type_id: int, key: bytes = b"", label: bytes = b"label") -> Command:
    padded = key + bytes(-len(key) % 4)
    tail = padded + struct.pack("<i", len(label)) + label
    return Command(type_id=commands.ADD_COUNTER, format="ii", fields=(type_id, len(key)), tail=tail)


def static_counter(registration: int | str, type_id: int) -> Command:
    tail = struct.pack("<i", 5) + b"label"
    return Command(type_id=commands.ADD_STATIC_COUNTER, format="qii", fields=(registration, type_id, 0), tail=tail)


def reject(of: int | str, reason: str) -> Command:
    return Command(type_id=commands.REJECT_IMAGE, format="qq", fields=(of, 0), channel=reason)


def raw(type_id: int, tail: bytes) -> Command:
    return Command(type_id=type_id, tail=tail)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provocation:
    """A command and the commands before it."""

    name: str
    before: tuple[Command, ...] = field(default=())
    command: Command


def row(name: str, *steps: Command) -> Provocation:
    return Provocation(name=name, before=steps[:-1], command=steps[-1])


A = "aeron:udp?endpoint=127.0.0.1:{a}"
MDC = "aeron:udp?control=127.0.0.1:{a}|control-mode=manual"
MDS = "aeron:udp?control-mode=manual"

# Texts that are no channel at all, and channels that name nothing to send to or receive from.
BAD_URIS = (
    "",
    "aeron",
    "aeron:",
    "aeron:udp",
    "aeron:tcp?endpoint=127.0.0.1:{a}",
    "Aeron:udp?endpoint=127.0.0.1:{a}",
    "udp?endpoint=127.0.0.1:{a}",
    "aeron:udpx?endpoint=127.0.0.1:{a}",
    "aeron:ipcx",
    "aeron:ipc:",
    "aeron:udp:endpoint=127.0.0.1:{a}",
    "aeron:udp?",
    "aeron:udp?endpoint",
    "aeron:udp?endpoint=",
    "aeron:udp?=127.0.0.1:{a}",
    "aeron:udp?endpoint|control=127.0.0.1:{a}",
    "aeron:udp?endpoint=|control=127.0.0.1:{a}",
    "aeron:udp?mtu=1408",
    "aeron:udp?endpont=127.0.0.1:{a}",
    "aeron:udp?" + "|".join(f"p{i}=1" for i in range(100)),
    "aeron:udp?endpoint=127.0.0.1:{a}|alias=" + "x" * 5000,
    "aeron-spy:",
    "aeron-spy:aeron:ipc",
    "aeron-spy:aeron:udp?mtu=1408",
    "aeron-spy:aeron-spy:aeron:udp?endpoint=127.0.0.1:{a}",
)

# What a parameter may be, but is not; on publications and subscriptions alike.
ADDRESSES = (
    "endpoint=127.0.0.1",
    "endpoint=127.0.0.1:",
    "endpoint=127.0.0.1:x",
    "endpoint=127.0.0.1:-1",
    "endpoint=127.0.0.1:65536",
    "endpoint=127.0.0.1:99999999",
    "endpoint=:{a}",
    "endpoint=[::1]",
    "endpoint=[::1:{a}",
    "endpoint=[::g]:{a}",
    "endpoint=[fe80::1%nothere]:{a}",
    "endpoint=nowhere.invalid:{a}",
    "endpoint=256.1.1.1:{a}",
    "endpoint=" + "h" * 300 + ":{a}",
    "endpoint=127.0.0.1:{used}",
    "endpoint=198.51.100.1:{a}",
    "endpoint=224.20.30.40:{a}",
    "endpoint=224.20.30.41",
    "endpoint=224.20.30.41:{a}|interface={nowhere}",
    "endpoint=224.20.30.41:{a}|interface=198.51.100.1",
    "endpoint=224.20.30.41:{a}|interface=198.51.100.1/33",
    "endpoint=224.20.30.41:{a}|interface=198.51.100.1/x",
    "endpoint=224.20.30.41:{a}|interface=nowhere.invalid",
    "endpoint=[ff02::2]:{a}|interface=[::1]",
    "endpoint=127.0.0.1:{a}|interface={nowhere}",
    "endpoint=127.0.0.1:{a}|interface={lo",
    "endpoint=127.0.0.1:{a}|interface={}",
    "endpoint=127.0.0.1:{a}|interface={lo}x",
    "endpoint=127.0.0.1:{a}|interface={lo}:x",
    "endpoint=127.0.0.1:{a}|interface=127.0.0.1:x",
    "endpoint=127.0.0.1:{a}|interface=[::1",
    "endpoint=127.0.0.1:{a}|interface=[::1]",
    "endpoint=127.0.0.1:{a}|interface=[::1]/129",
    "endpoint=127.0.0.1:{a}|interface=198.51.100.0/24",
    "endpoint=127.0.0.1:{a}|interface=" + "i" * 300,
    "control=127.0.0.1|control-mode=dynamic",
    "control=127.0.0.1:x|control-mode=dynamic",
    "control=nowhere.invalid:{a}|control-mode=dynamic",
    "control=127.0.0.1:{used}|control-mode=dynamic",
    "control=198.51.100.1:{a}|control-mode=dynamic",
    "control=127.0.0.1:{a}",
    "control=127.0.0.1:0",
    "control=127.0.0.1:0|control-mode=dynamic",
    "control-mode=dynamic",
    "control-mode=dynamic|endpoint=127.0.0.1:{a}",
    "control-mode=bogus",
    "control-mode=response",
    "endpoint=127.0.0.1:0",
    "endpoint=127.0.0.1:{a}|tags=x",
    "endpoint=127.0.0.1:{a}|tags={tag}x",
    "endpoint=127.0.0.1:{a}|tags=-1",
    "endpoint=127.0.0.1:{a}|tags=99999999999999999999",
    "endpoint=127.0.0.1:{a}|tags=,x",
    "endpoint=127.0.0.1:{a}|tags=,-1",
    "endpoint=127.0.0.1:{a}|tags={tag},99999999999999999999",
    "tags=4711",
    "tags=,4711",
)

# Appended to a channel that is right.
PARAMETERS = (
    "ats=true",
    "ats=maybe",
    "so-sndbuf=abc",
    "so-sndbuf=-1",
    "so-sndbuf=64q",
    "so-sndbuf=8g",
    "so-sndbuf=99999999999999999999",
    "so-rcvbuf=abc",
    "so-rcvbuf=8g",
    "rcv-wnd=abc",
    "rcv-wnd=-1",
    "rcv-wnd=1g",
    "rcv-wnd=8g",
    "nak-delay=abc",
    "nak-delay=5m",
    "gtag=abc",
    "gtag=99999999999999999999",
    "ttl=abc",
    "ttl=256",
    "session-id=abc",
    "session-id=4294967296",
    "session-id= 5",
    "session-id=tag:x",
    "session-id=tag:1",
    "sparse=maybe",
    "channel-rcv-ts-offset=abc",
    "channel-snd-ts-offset=abc",
    "media-rcv-ts-offset=abc",
    "channel-rcv-ts-offset=0|media-rcv-ts-offset=4",
    "channel-snd-ts-offset=0|channel-rcv-ts-offset=4",
    "channel-snd-ts-offset=reserved|media-rcv-ts-offset=reserved",
    "untethered-window-limit-timeout=abc",
    "untethered-linger-timeout=abc",
    "untethered-resting-timeout=abc",
)
OF_PUBLICATIONS = (
    "term-length=abc",
    "term-length=-1",
    "term-length=65537",
    "term-length=32k",
    "term-length=2g",
    "term-length=8g",
    "mtu=abc",
    "mtu=31",
    "mtu=32",
    "mtu=1409",
    "mtu=65536",
    "mtu=8g",
    "mtu=8224",
    "mtu=65504|so-sndbuf=32k",
    "pub-wnd=abc",
    "pub-wnd=64",
    "pub-wnd=64k|term-length=64k",
    "init-term-id=1",
    "init-term-id=1|term-id=2",
    "term-offset=64",
    "init-term-id=x|term-id=2|term-offset=0",
    "init-term-id=1|term-id=x|term-offset=0",
    "init-term-id=1|term-id=2|term-offset=x",
    "init-term-id=2|term-id=1|term-offset=0",
    "init-term-id=1|term-id=2|term-offset=65568|term-length=64k",
    "init-term-id=1|term-id=2|term-offset=31",
    "init-term-id=1|term-id=2|term-offset=-32",
    "linger=abc",
    "linger=5m",
    "eos=maybe",
    "ssc=maybe",
    "max-resend=abc",
    "max-resend=0",
    "max-resend=257",
    "max-resend=-1",
    "stream-id=7",
    "stream-id=abc",
    "response-correlation-id=abc",
    "response-correlation-id=-5",
    "response-correlation-id=-2",
    "response-correlation-id=prototype",
    "response-correlation-id=987654321",
    "response-correlation-id=99999999999999999999",
    "control-mode=response|control=127.0.0.1:{b}|response-correlation-id=987654321",
    "control-mode=response|control=127.0.0.1:{b}|response-correlation-id=abc",
    "control-mode=response|control=127.0.0.1:{b}",
)
OF_IPC_PUBLICATIONS = (
    *(one for one in OF_PUBLICATIONS if "control" not in one and "so-sndbuf" not in one),
    "session-id=abc",
    "session-id=tag:1",
    "session-id=tag:x",
    "sparse=maybe",
    "tags=1,x",
    "untethered-window-limit-timeout=abc",
)
OF_SUBSCRIPTIONS = (
    "tether=maybe",
    "rejoin=maybe",
    "reliable=maybe",
    "group=maybe",
    "rcv-wnd=128k|so-rcvbuf=64k",
    "cc=bogus",
)
FLOW_CONTROLS = (
    "fc=bogus",
    "fc=",
    "fc=,t:1s",
    "fc=max,t:1s",
    "fc=min,g:",
    "fc=min,t:",
    "fc=min,t:xx",
    "fc=min,x:1",
    "fc=min,rrwm:0",
    "fc=tagged,g:x",
    "fc=tagged,g:x/1",
    "fc=tagged,g:1/x",
    "fc=tagged,g:1/-1",
    "fc=tagged,g:/",
)

# Two that share an endpoint or a stream and do not agree: the first, the second.
CONFLICTS = (
    ("pub", A + "|mtu=1408", A + "|mtu=4096"),
    ("pub", A + "|term-length=64k", A + "|term-length=128k"),
    ("pub", A + "|session-id=100", A + "|session-id=101"),
    ("pub", A + "|session-id=100", A + "|session-id=tag:5"),
    ("pub", A + "|ssc=false", A + "|ssc=true"),
    ("pub", A, A + "|init-term-id=1|term-id=2|term-offset=64"),
    ("pub", A + "|init-term-id=1|term-id=2|term-offset=64", A + "|init-term-id=1|term-id=3|term-offset=64"),
    ("pub", A + "|init-term-id=1|term-id=2|term-offset=64", A + "|init-term-id=1|term-id=2|term-offset=96"),
    ("pub", A + "|linger=1s", A + "|linger=2s"),
    ("pub", A + "|pub-wnd=4k", A + "|pub-wnd=8k"),
    ("pub", A + "|max-resend=4", A + "|max-resend=8"),
    ("pub", A + "|eos=true", A + "|eos=false"),
    ("pub", A + "|sparse=true", A + "|sparse=false"),
    ("pub", A + "|ttl=4", A + "|ttl=5"),
    ("pub", A + "|untethered-linger-timeout=1s", A + "|untethered-linger-timeout=2s"),
    ("pub", A + "|tags={tag},8{tag}", A + "|tags={tag},8{tag}"),
    ("pub", A + "|tags={tag},8{tag}", A + "|tags={tag},9{tag}"),
    ("pub", A + "|tags={tag}", A + "|tags=1{tag}"),
    ("pub", A + "|tags={tag}", "aeron:udp?endpoint=127.0.0.1:{b}|tags={tag}"),
    ("pub", A + "|tags={tag}", "aeron:udp?endpoint=localhost:{a}|tags={tag}"),
    ("pub", A + "|tags={tag}", "aeron:udp?tags={tag}"),
    ("pub", A + "|tags={tag}", "aeron:udp?tags={tag}|control-mode=manual"),
    ("pub", A + "|tags={tag}", "aeron:udp?tags={tag}|control=127.0.0.1:{b}|control-mode=dynamic"),
    ("pub", "aeron:udp?control=127.0.0.1:{a}|control-mode=dynamic|tags={tag}", "aeron:udp?tags={tag}"),
    (
        "pub",
        "aeron:udp?control=127.0.0.1:{a}|control-mode=dynamic|tags={tag}",
        "aeron:udp?tags={tag}|control-mode=manual",
    ),
    ("pub", A + "|so-sndbuf=128k", A + "|so-sndbuf=64k"),
    ("pub", A + "|so-sndbuf=128k", A),
    ("pub", A, A + "|so-sndbuf=128k"),
    ("pub", A + "|so-rcvbuf=128k", A + "|so-rcvbuf=64k"),
    ("pub", A, A + "|so-rcvbuf=128k"),
    ("pub", A, A + "|so-sndbuf={sndbuf}"),
    ("pub", A + "|so-sndbuf={sndbuf}", A),
    ("pub", A + "|so-sndbuf=64k", A + "|mtu=65504"),
    ("xpub", A + "|so-sndbuf=32k", A + "|mtu=65504"),
    ("pub", A, A + "|channel-snd-ts-offset=8"),
    ("pub", A + "|channel-snd-ts-offset=0", A + "|channel-snd-ts-offset=8"),
    ("pub", A + "|channel-snd-ts-offset=0", A),
    ("pub", "aeron:ipc", "aeron:ipc?mtu=4096"),
    ("pub", "aeron:ipc", "aeron:ipc?term-length=128k"),
    ("pub", "aeron:ipc?session-id=100", "aeron:ipc?session-id=101"),
    ("pub", "aeron:ipc", "aeron:ipc?init-term-id=1|term-id=2|term-offset=64"),
    ("pub", "aeron:ipc?ssc=true", "aeron:ipc?ssc=false"),
    ("pub", "aeron:ipc?tags={tag},8{tag}", "aeron:ipc?tags={tag},8{tag}"),
    ("xpub", A + "|session-id=100", A + "|session-id=100"),
    ("xpub", "aeron:ipc?session-id=100", "aeron:ipc?session-id=100"),
    ("xpub", A + "|session-id=5|tags={tag},77", "aeron:udp?tags={tag}|session-id=tag:77|mtu=4096"),
    ("xpub", "aeron:ipc?session-id=5|tags={tag},78", "aeron:ipc?session-id=tag:78|mtu=4096"),
    ("sub", A, A + "|reliable=false"),
    ("sub", A, A + "|rejoin=false"),
    ("sub", A, A + "|tether=false"),
    ("sub", A, A + "|sparse=false"),
    ("sub", A, A + "|group=true"),
    ("sub", A, A + "|cc=cubic"),
    ("sub", A, A + "|nak-delay=5ms"),
    ("sub", A, A + "|ttl=5"),
    ("sub", A, A + "|gtag=5"),
    ("sub", A + "|session-id=100", A + "|session-id=100|reliable=false"),
    (
        "sub",
        A + "|session-id=100|control=127.0.0.1:{b}",
        A + "|session-id=100|control=127.0.0.1:{b}|control-mode=response",
    ),
    ("sub", A, A + "|so-rcvbuf=256k"),
    ("sub", A + "|so-rcvbuf=256k", A + "|so-rcvbuf=512k"),
    ("sub", A + "|so-rcvbuf=256k", A),
    ("sub", A, A + "|so-sndbuf=256k"),
    ("sub", A, A + "|so-rcvbuf=128k"),
    ("sub", A + "|so-rcvbuf=128k", A),
    ("sub", A + "|so-rcvbuf=256k", A + "|so-rcvbuf=256k|rcv-wnd=200k"),
    ("sub", A + "|so-rcvbuf=256k", A + "|rcv-wnd=200k"),
    ("sub", A, A + "|rcv-wnd=64k"),
    ("sub", A + "|rcv-wnd=64k", A + "|rcv-wnd=32k"),
    ("sub", A, A + "|rcv-wnd=1g"),
    ("sub", A, A + "|media-rcv-ts-offset=0"),
    ("sub", A, A + "|channel-rcv-ts-offset=0"),
    ("sub", A + "|channel-rcv-ts-offset=8", A + "|channel-rcv-ts-offset=0"),
    ("sub", A + "|channel-rcv-ts-offset=8", A),
    ("sub", A + "|channel-rcv-ts-offset=reserved", A + "|channel-rcv-ts-offset=8"),
    ("sub", A + "|tags={tag}", "aeron:udp?endpoint=127.0.0.1:{b}|tags={tag}"),
    ("sub", A + "|tags={tag}", "aeron:udp?tags={tag}"),
    ("sub", A + "|tags={tag}", "aeron:udp?tags={tag}|control-mode=manual"),
    ("sub", A, "aeron:udp?endpoint=localhost:{a}"),
)

# Of destinations, behind the scheme; of publications and subscriptions.
DESTINATIONS = (
    "",
    "aeron:tcp",
    "aeron:ipc",
    "aeron:ipc?sparse=maybe",
    "aeron-spy:aeron:udp?endpoint=127.0.0.1:{b}",
    "aeron-spy:aeron:udp?mtu=1408",
    "aeron-spy:aeron:udp?endpoint=127.0.0.1:{b}|tether=maybe",
    "aeron:udp",
    "aeron:udp?mtu=1408",
    "aeron:udp?control=127.0.0.1:{b}",
    "aeron:udp?endpoint=127.0.0.1",
    "aeron:udp?endpoint=127.0.0.1:x",
    "aeron:udp?endpoint=127.0.0.1:0",
    "aeron:udp?endpoint=127.0.0.1:00",
    "aeron:udp?endpoint=nowhere.invalid:{b}",
    "aeron:udp?endpoint=127.0.0.1:{used}",
    "aeron:udp?endpoint=224.20.30.40:{b}",
    "aeron:udp?endpoint=127.0.0.1:{b}|interface={nowhere}",
    "aeron:udp?endpoint=127.0.0.1:{b}|mtu=1408",
    "aeron:udp?endpoint=127.0.0.1:{b}|rcv-wnd=64k",
    "aeron:udp?endpoint=127.0.0.1:{b}|so-rcvbuf=64k",
    "aeron:udp?endpoint=127.0.0.1:{b}|so-sndbuf=64k",
    "aeron:udp?endpoint=127.0.0.1:{b}|so-sndbuf=abc",
    "aeron:udp?endpoint=127.0.0.1:{b}|response-correlation-id=1",
    "aeron:udp?endpoint=127.0.0.1:{b}|control=127.0.0.1:{c}|control-mode=response",
    "aeron:udp?endpoint=127.0.0.1:{b}|ats=true",
    "aeron:udp?endpoint=127.0.0.1:{b}|tags=x",
    "aeron:udp?tags={tag}",
)


def _uris() -> list[Provocation]:
    rows = []
    for channel in BAD_URIS:
        short = channel if len(channel) < 60 else f"{channel[:50]}...({len(channel)})"
        rows += [row(f"{add.__name__} {short}", add(channel)) for add in (pub, sub)]
    for params in ADDRESSES:
        short = params if len(params) < 90 else f"{params[:50]}...({len(params)})"
        rows += [row(f"{add.__name__} {short}", add(f"aeron:udp?{params}")) for add in (pub, sub)]
    for params in PARAMETERS:
        rows += [row(f"{add.__name__} {params}", add(f"{A}|{params}")) for add in (pub, sub)]
    rows += [row(f"pub {params}", pub(f"{A}|{params}")) for params in OF_PUBLICATIONS]
    rows += [row(f"pub ipc {params}", pub(f"aeron:ipc?{params}")) for params in OF_IPC_PUBLICATIONS]
    rows += [row(f"sub {params}", sub(f"{A}|{params}")) for params in OF_SUBSCRIPTIONS]
    rows += [
        row(f"sub ipc {params}", sub(f"aeron:ipc?{params}")) for params in (*OF_SUBSCRIPTIONS[1:4], "sparse=maybe")
    ]
    for params in ("session-id=abc", "tether=maybe", "untethered-linger-timeout=abc"):
        rows += [
            row(f"sub {kind} {params}", sub(f"{of}|{params}"))
            for kind, of in (("spy", f"aeron-spy:{A}"), ("ipc", "aeron:ipc?alias=x"))
        ]
    for kind, channel in (
        ("unicast", A),
        ("multicast", "aeron:udp?endpoint=224.20.30.41:{a}|interface=127.0.0.1"),
        ("mdc", MDC),
    ):
        rows += [row(f"pub {kind} {params}", pub(f"{channel}|{params}")) for params in FLOW_CONTROLS]
    rows.append(row("pub spy", pub(f"aeron-spy:{A}")))
    return rows


def _conflicts() -> list[Provocation]:
    adds = {"pub": pub, "xpub": xpub, "sub": sub}
    return [row(f"{kind} {one} then {two}", adds[kind](one), adds[kind](two)) for kind, one, two in CONFLICTS]


def _destinations() -> list[Provocation]:
    rows = []
    for add, of, before in ((dest, MDC, pub), (undest, MDC, pub), (rdest, MDS, sub), (unrdest, MDS, sub)):
        rows += [row(f"{add.__name__} {channel}", before(of), add("0", channel)) for channel in DESTINATIONS]
    udp = "aeron:udp?endpoint=127.0.0.1:{b}"
    rows += [row(f"{add.__name__} of none", add(UNKNOWN_ID, udp)) for add in (dest, undest, rdest, unrdest)]
    rows += [
        row(f"{add.__name__} of none with a bad channel", add(UNKNOWN_ID, "aeron"))
        for add in (dest, undest, rdest, unrdest)
    ]
    for what, of in (
        ("unicast", A),
        ("dynamic", "aeron:udp?control=127.0.0.1:{a}|control-mode=dynamic"),
        ("ipc", "aeron:ipc"),
    ):
        rows += [row(f"{add.__name__} of {what}", pub(of), add("0", udp)) for add in (dest, undest)]
        if what != "dynamic":
            rows += [row(f"{add.__name__} of {what}", sub(of), add("0", udp)) for add in (rdest, unrdest)]
            rows += [row(f"{add.__name__} ipc of {what}", sub(of), add("0", "aeron:ipc")) for add in (rdest, unrdest)]
    rows += [
        row("rdest of a publication", pub(MDC), rdest("0", udp)),
        row("dest of a subscription", sub(MDS), dest("0", udp)),
        row("rdest twice", sub(MDS), rdest("0", udp), rdest("0", udp)),
        row("undest_by_id of none", undest_by_id(UNKNOWN_ID, UNKNOWN_ID)),
        row("undest_by_id of unicast", pub(A), undest_by_id("0", UNKNOWN_ID)),
        row("undest_by_id of no destination", pub(MDC), undest_by_id("0", UNKNOWN_ID)),
    ]
    return rows


def _others() -> list[Provocation]:
    negative = struct.pack("<ii", 1001, -1)
    return [
        row("unpub of none", unpub(UNKNOWN_ID)),
        row("unpub of a subscription", sub(A), unpub("0")),
        row("unpub twice", pub(A), unpub("0"), unpub("0")),
        row("unsub of none", unsub(UNKNOWN_ID)),
        row("unsub of a publication", pub(A), unsub("0")),
        row("uncounter of none", uncounter(UNKNOWN_ID)),
        row("uncounter of a static one", static_counter(UNKNOWN_ID, 1101), uncounter(UNKNOWN_ID)),
        row("static_counter beside another", counter(1102), static_counter("0", 1102)),
        row("reject of none", reject(UNKNOWN_ID, "not wanted")),
        row("reject with a short reason", reject(UNKNOWN_ID, "no")),
        row("reject of an ipc image", pub("aeron:ipc?session-id=5"), sub("aeron:ipc"), reject("0", "not wanted")),
        row("reject of none, long", reject(UNKNOWN_ID, "x" * 1024)),
        row("reject of an ipc publication, long", pub("aeron:ipc"), reject("0", "x" * 1024)),
        row("reject of a network publication", pub(A), reject("0", "not wanted")),
        row("an unknown command", raw(0x7F, bytes(16))),
        row("a publication without a channel", raw(commands.ADD_PUBLICATION, bytes(4))),
        row("a publication with a negative length", raw(commands.ADD_PUBLICATION, negative)),
        row("a publication with too long a length", raw(commands.ADD_PUBLICATION, struct.pack("<ii", 1001, 99))),
        row("a subscription with a negative length", raw(commands.ADD_SUBSCRIPTION, bytes(8) + negative)),
        row(
            "a subscription with too long a length",
            raw(commands.ADD_SUBSCRIPTION, bytes(8) + struct.pack("<ii", 1001, 99)),
        ),
        row("a destination with a negative length", raw(commands.ADD_DESTINATION, bytes(8) + struct.pack("<i", -1))),
        row("a removal without an id", raw(commands.REMOVE_SUBSCRIPTION, bytes(4))),
        row("a counter without a label", raw(commands.ADD_COUNTER, struct.pack("<ii", 1101, 8))),
        row("a counter with a negative key length", raw(commands.ADD_COUNTER, struct.pack("<iii", 1101, -4, 0))),
        row("a rejection that is too short", raw(commands.REJECT_IMAGE, bytes(8))),
        row(
            "a rejection with too long a length",
            raw(commands.REJECT_IMAGE, bytes(16) + struct.pack("<i", 99) + bytes(8)),
        ),
    ]


PROVOCATIONS = (*_uris(), *_conflicts(), *_destinations(), *_others())
