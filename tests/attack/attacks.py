"""The attacks. Each takes the world as it is at work, and a number of the variant; the rest follows from the attacker's chance.

What they know: the addresses, ports and stream ids that a configuration names. Where one says `seen`, the attacker stands on
the way and knows what passes. Who has seen a stream's session id can end it or write into it; that is not promised against
(docs/security.md) and not tried.
"""

from __future__ import annotations

import itertools
import socket
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tests.attack import honest
from tests.attack.forge import Stream, Wire
from tests.attack.world import World
from tests.conformance.archive import codec
from tests.conformance.udp import raw
from tests.conformance.udp.raw import Address

IN: Address = (honest.VICTIM, 20121)
RECORDED: Address = (honest.VICTIM, 20122)
CAST: Address = (honest.VICTIM, 20123)
CONTROL_STREAM = 10
MIB = 1 << 20
Act = Callable[[World, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One attack; `variants` is how many forms it has, `quiet_s` how long its aftermath is watched."""

    name: str
    act: Act
    variants: int


ATTACKS: dict[str, Attack] = {}


def attack(variants: int) -> Callable[[Act], Act]:
    """Enter an attack."""

    def enter(act: Act) -> Act:
        ATTACKS[act.__name__] = Attack(name=act.__name__, act=act, variants=variants)
        return act

    return enter


def _paced(things: Iterable[int], per_second: float) -> Iterator[int]:
    """No faster than that, in bursts of a few ms."""
    begun = time.monotonic()
    for number, thing in enumerate(things):
        if (ahead := begun + number / per_second - time.monotonic()) > 0.004:
            time.sleep(ahead)
        yield thing


def _connect_request(world: World, channel: str, credentials: bytes, stream_id: int = 7777) -> bytes:
    return codec.encode(
        "AuthConnectRequest",
        correlationId=world.attacker.rng.randrange(1 << 60),
        responseStreamId=stream_id,
        responseChannel=channel,
        encodedCredentials=credentials,
        clientInfo=b"name=attacker",
    )


def _own_channel(world: World, more: str = "") -> str:
    return f"aeron:udp?endpoint={world.attacker.host.address}:{world.attacker.port}{more}"


def _control(world: World, source: Address | None = None) -> Stream:
    return world.attacker.stream(honest.CONTROL, CONTROL_STREAM, source=source)


@attack(4)
def login_that_asks_for_large_logs(world: World, variant: int) -> None:
    """Wrong credentials, and a response channel of gigabytes."""
    more, count = [
        ("|term-length=1g|sparse=false", 1),
        ("|term-length=1g|sparse=true", 200),
        ("|term-length=1g|sparse=false|mtu=65504", 50),
        ("|term-length=256m|sparse=false|linger=3600000000000", 50),
    ][variant]
    control = _control(world)
    for number in range(count):
        # Each is another channel, so that no log serves two.
        channel = f"aeron:udp?endpoint={world.attacker.host.address}:{30000 + number}{more}"
        control.offer(_connect_request(world, channel, b"honest:wrong"))
    control.flush()


@attack(5)
def setups_of_large_terms(world: World, variant: int) -> None:
    """Sessions of terms as long as can be, with data at 0, then a heartbeat half a term on, which promises a gap."""
    term_length, sessions, with_data = [
        (256 * MIB, 12, False),
        (256 * MIB, 12, True),
        (16 * MIB, 80, True),
        (1024 * MIB, 3, True),
        (64 * MIB, 200, False),
    ][variant]
    attacker = world.attacker
    forged = [(attacker.session_id(), attacker.session_id(), attacker.neighbour()) for _ in range(sessions)]
    for session, term, source in forged:
        setup = raw.Setup(
            session_id=session,
            stream_id=honest.IN,
            initial_term_id=term,
            active_term_id=term,
            term_length=term_length,
        )
        attacker.send(setup, IN, source)
    attacker.await_images([session for session, _, _ in forged], 0.5)
    for round_ in _paced(range(3), 10):
        for session, term, source in forged:
            at = {"session_id": session, "stream_id": honest.IN, "term_id": term}
            first = raw.Data(**at, payload=b"x" * 32) if with_data else raw.Data(**at, length=0)
            attacker.send(first, IN, source)
            far = [term_length // 2, term_length - 64, term_length // 2 + 4096 * round_]
            for offset in far:
                attacker.send(raw.Data(**at, length=0, term_offset=offset), IN, source)


@attack(4)
def floods_of_sessions(world: World, variant: int) -> None:
    """Thousands of sessions on a stream with or without a subscriber; with a heartbeat or a message each."""
    attacker = world.attacker
    stream_id = honest.IN if variant != 3 else 99
    for _ in _paced(range(6000), 6000):
        session, term, source = attacker.session_id(), attacker.session_id(), attacker.neighbour()
        setup = raw.Setup(session_id=session, stream_id=stream_id, initial_term_id=term, active_term_id=term)
        attacker.send(setup, IN, source)
        at = {"session_id": session, "stream_id": stream_id, "term_id": term}
        if variant == 1:
            attacker.send(raw.Data(**at, length=0), IN, source)
        if variant == 2:
            attacker.send(raw.Data(**at, payload=b"y" * 64), IN, source)


@attack(2)
def setups_at_the_control_endpoint(world: World, variant: int) -> None:
    """Sessions that a client of the archive could begin, of ever other hosts; without a request, few or many."""
    attacker = world.attacker
    for _ in _paced(range((2500, 24_000)[variant]), (500, 6000)[variant]):
        session, term, source = attacker.session_id(), attacker.session_id(), attacker.neighbour()
        setup = raw.Setup(session_id=session, stream_id=CONTROL_STREAM, initial_term_id=term, active_term_id=term)
        attacker.send(setup, honest.CONTROL, source)


@attack(2)
def floods_of_begun_sessions(world: World, variant: int) -> None:
    """Twenty thousand sessions that have a message where they joined, and are streams from then on; each beats once."""
    attacker = world.attacker
    to, stream_id = [(IN, honest.IN), (honest.CONTROL, CONTROL_STREAM)][variant]
    forged = [(attacker.session_id(), attacker.session_id(), attacker.neighbour()) for _ in range(20_000)]
    for first in (number * 200 for number in _paced(range(len(forged) // 200), 30)):
        some = forged[first : first + 200]
        for session, term, source in some:
            setup = raw.Setup(session_id=session, stream_id=stream_id, initial_term_id=term, active_term_id=term)
            attacker.send(setup, to, source)
        # Those of before have images now.
        for session, term, source in forged[max(0, first - 200) : first]:
            attacker.send(
                raw.Data(session_id=session, stream_id=stream_id, term_id=term, payload=b"b" * 32), to, source
            )


@attack(3)
def setups_at_a_recorded_endpoint(world: World, variant: int) -> None:
    """A thousand sessions that the archive would record; alone, with a heartbeat, or with a message each."""
    attacker = world.attacker
    forged = [(attacker.session_id(), attacker.session_id(), attacker.neighbour()) for _ in range(1000)]
    for number in _paced(range(1000), 2000):
        session, term, source = forged[number]
        setup = raw.Setup(session_id=session, stream_id=honest.RECORDED, initial_term_id=term, active_term_id=term)
        attacker.send(setup, RECORDED, source)
    attacker.await_images([session for session, _, _ in forged], 0.3)
    for session, term, source in forged if variant else []:
        at = {"session_id": session, "stream_id": honest.RECORDED, "term_id": term}
        attacker.send(raw.Data(**at, length=0) if variant == 1 else raw.Data(**at, payload=b"z" * 64), RECORDED, source)


@attack(2)
def setups_and_frames_far_ahead(world: World, variant: int) -> None:
    """Sessions that begin with a gap, which causes NAKs; a heartbeat, or a message behind it, announces it."""
    attacker = world.attacker
    forged = [(attacker.session_id(), attacker.session_id(), attacker.neighbour()) for _ in range(300)]
    for session, term, source in (forged[number] for number in _paced(range(300), 2000)):
        setup = raw.Setup(session_id=session, stream_id=honest.IN, initial_term_id=term, active_term_id=term)
        attacker.send(setup, IN, source)
    attacker.await_images([session for session, _, _ in forged], 0.3)
    for session, term, source in (forged[number] for number in _paced(range(300), 2000)):
        at = {"session_id": session, "stream_id": honest.IN, "term_id": term, "term_offset": 8192}
        attacker.send(raw.Data(**at, length=0) if variant == 0 else raw.Data(**at, payload=b"z" * 32), IN, source)


@attack(4)
def answers_to_absent_hosts(world: World, variant: int) -> None:
    """SETUPs, data, requests for a stream, names: from hosts that do not exist, so that answers wait for their addresses."""
    attacker = world.attacker
    for number in _paced(range(1500), 500):
        source, session = attacker.absent(), attacker.session_id()
        at = {"session_id": session, "stream_id": honest.IN}
        frame: raw.Frame | bytes = [
            raw.Setup(**at, initial_term_id=session, active_term_id=session),
            raw.Data(**at, term_id=session, payload=b"x" * 32),
            raw.Status(stream_id=honest.CAST, window=128 * 1024, receiver_id=number + 1, flags=raw.SEND_SETUP),
            _gossip(_name(f"absent-{number:04}", source, _OWN_NAME)),
        ][variant]
        attacker.send(frame, (IN, IN, CAST, honest.NAMES)[variant], source)


_OWN_NAME = 0x80


def _name(name: str, at: Address, flags: int = 0) -> bytes:
    bare = struct.pack("<BBHi4sH", 1, flags, at[1], 0, socket.inet_aton(at[0]), len(name)) + name.encode()
    return bare + bytes(-len(bare) % 8)


def _gossip(*entries: bytes) -> bytes:
    body = b"".join(entries)
    return struct.pack("<iBBH", 8 + len(body), 0, 0, 7) + body


@attack(2)
def neighbours_that_never_were(world: World, variant: int) -> None:
    """A thousand names of invented drivers, to be sent to as many; others report them, or they send themselves."""
    attacker = world.attacker

    def invented(number: int) -> bytes:
        return _name(f"invented-{number:04}", attacker.neighbour())

    for number in _paced(range(0, 1000, 25), 100):
        attacker.send(_gossip(*(invented(number + one) for one in range(25))), honest.NAMES)
    for number in _paced(range(200 if variant == 1 else 0), 1000):
        source = attacker.neighbour()
        attacker.send(_gossip(_name(f"forged-{number:04}", source, _OWN_NAME)), honest.NAMES, source)


@attack(3)
def status_messages_of_endless_windows(world: World, variant: int) -> None:
    """Seen: a stream to a slow reader. Its publisher gets a window of two gigabytes."""
    wire = Wire(world.friend)
    found, source, to = wire.find(raw.Data, honest.SLOW)
    wire.close()
    assert isinstance(found, raw.Data)
    rng = world.attacker.rng
    for number in _paced(range(300 if variant else 1), 300):
        message = raw.Status(
            session_id=found.session_id,
            stream_id=honest.SLOW,
            term_id=found.term_id,
            term_offset=found.term_offset,
            window=2**31 - 1 if number % 2 == 0 else 128 * 1024,
            receiver_id=1 if variant < 2 else rng.randrange(1, 2**62),
        )
        world.attacker.send(message, source, to)


@attack(5)
def responses_to_others(world: World, variant: int) -> None:
    """Answers are asked for on channels that lead to local streams, or to other hosts' applications."""
    channels = [
        ["aeron:ipc", "aeron:ipc?term-length=1g", "aeron-spy:aeron:ipc"],
        [f"aeron:udp?endpoint=127.0.0.1:{port}" for port in (20121, 20122, 40123)],
        [f"aeron:udp?endpoint={honest.FRIEND}:20124", f"aeron:udp?endpoint={honest.VICTIM}:20122"],
        ["aeron:udp?endpoint=224.0.1.1:40456|interface=10.77.0.0/24", "aeron:udp?endpoint=10.77.0.255:4000"],
        [
            f"aeron:udp?control-mode=response|control={honest.FRIEND}:20124",
            _own_channel(world, f"|control={honest.VICTIM}:20999|control-mode=dynamic"),
            _own_channel(world, "|control-mode=manual"),
        ],
    ][variant]
    control = _control(world)
    for channel, credentials in itertools.product(channels, (b"", b"honest", b"honest:wrong", b"nobody:x")):
        for stream_id in (honest.RECORDED, honest.SLOW, 10):
            control.offer(_connect_request(world, channel, credentials, stream_id))
    control.flush()


@attack(3)
def requests_of_invented_sessions(world: World, variant: int) -> None:
    """Twelve thousand requests, each of another control session that never was; over few streams, or many."""
    streams = [
        _control(world, None if variant != 2 else world.attacker.neighbour()) for _ in range((4, 60, 200)[variant])
    ]
    rng = world.attacker.rng
    names = ("KeepAliveRequest", "ListRecordingsRequest", "StopReplayRequest", "PurgeRecordingRequest")
    for number in _paced(range(12_000), 6000):
        request = codec.encode(
            names[number % len(names)],
            controlSessionId=rng.randrange(1 << 62),
            correlationId=number,
        )
        streams[number % len(streams)].offer(request)


@attack(4)
def wrong_passwords(world: World, variant: int) -> None:
    """Three hundred of them in the queue, over one stream or one each, from one address or many."""
    if variant == 0:
        streams = [_control(world)] * 300
    elif variant == 1:
        streams = [_control(world) for _ in range(30)] * 10
    else:
        sources = [world.attacker.neighbour() for _ in range(300 if variant == 2 else 20)]
        streams = [_control(world, source) for source in sources] * (300 // len(sources))
    for number, stream in enumerate(streams):
        stream.offer(_connect_request(world, _own_channel(world), f"honest:wrong{number}".encode()))


@attack(3)
def undecided_sessions(world: World, variant: int) -> None:
    """A thousand that ask for a challenge, and never answer."""
    count = (1, 25, 200)[variant]
    streams = [_control(world, None if variant < 2 else world.attacker.neighbour()) for _ in range(count)]
    for number in range(1000):
        streams[number % count].offer(_connect_request(world, _own_channel(world), b"honest"))


@attack(3)
def receivers_that_never_were(world: World, variant: int) -> None:
    """Wildcard status messages to a publication of dynamic destinations, each from another port: each wants a copy."""
    attacker = world.attacker
    for number in _paced(range(1500), 3000):
        message = raw.Status(
            stream_id=honest.CAST,
            window=128 * 1024,
            receiver_id=attacker.rng.randrange(1, 2**62),
            flags=raw.SEND_SETUP if variant == 1 else 0,
        )
        source = (attacker.host.address, 10_000 + number) if variant < 2 else attacker.neighbour()
        attacker.send(message, CAST, source)


@attack(2)
def naks_of_whole_terms(world: World, variant: int) -> None:
    """Seen: a stream. 28 bytes ask for all of its term; once, or two hundred times."""
    wire = Wire(world.friend)
    stream_id = honest.CAST if variant == 0 else honest.SLOW
    found, source, to = wire.find(raw.Data, stream_id)
    wire.close()
    assert isinstance(found, raw.Data)
    for _ in _paced(range(200), 100):
        nak = raw.Nak(
            session_id=found.session_id,
            stream_id=stream_id,
            term_id=found.term_id,
            term_offset=0,
            gap=found.term_offset,
        )
        world.attacker.send(nak, source, to)


@attack(3)
def frames_far_ahead(world: World, variant: int) -> None:
    """Seen: a stream that comes in. A heartbeat, or frames without a message, at the end of its window make gaps."""
    wire = Wire(world.friend)
    found, source, to = wire.find(raw.Data, honest.IN)
    wire.close()
    assert isinstance(found, raw.Data)
    attacker = world.attacker
    for number in _paced(range((1, 400, 400)[variant]), 200):
        ahead = 60 * 1024 if variant < 2 else 8192 + 2048 * (number % 24)
        at = found.term_offset + ahead
        frame = raw.Data(
            session_id=found.session_id,
            stream_id=honest.IN,
            term_id=raw.wrap32(found.term_id + at // (128 * 1024)),
            term_offset=at % (128 * 1024),
            length=0,
        )
        attacker.send(frame, to, source)


@attack(3)
def odd_requests(world: World, variant: int) -> None:
    """Requests with texts of thousands of bytes, of all templates with chance for values, cut, of other schemas."""
    control = _control(world)
    rng = world.attacker.rng
    if variant == 0:
        for length in (200, 2000, 20_000 // 16):
            channel = f"aeron:udp?endpoint={world.attacker.host.address}:30000|interface={'9' * length}"
            control.offer(_connect_request(world, channel[:1300], b"honest:wrong"))
            control.offer(_connect_request(world, f"aeron:udp?{'alias=a|' * (length // 16)}"[:1300], b"honest:wrong"))
    for _ in range(1500):
        template = rng.choice(list(codec.TEMPLATES.values()))
        body = rng.randbytes(rng.randrange(200))
        block = template.block_length if variant < 2 else rng.randrange(1 << 16)
        message = codec.header(template.id, block, version=rng.choice([0, 3, 6, 13, 99])) + body
        if variant == 2:
            message = message[: rng.randrange(len(message))] + rng.randbytes(8)
        control.offer(message)
    control.flush()


@attack(3)
def messages_without_an_end(world: World, variant: int) -> None:
    """Fragmented control messages: begun and never ended on many streams, endless, or ended without a beginning."""
    begin, end, middle = 0x80, 0x40, 0
    streams = [_control(world) for _ in range((60, 4, 20)[variant])]
    payload = world.attacker.rng.randbytes(1300)
    for number in range(1200):
        stream = streams[number % len(streams)]
        first = number < len(streams)
        flags = (begin if first or variant == 0 else middle) if variant < 2 else (middle, end, begin)[number % 3]
        stream.offer(payload, flags)


@attack(3)
def control_frames_of_every_kind(world: World, variant: int) -> None:
    """RTT measurements, errors, NAKs, status messages, response set-ups, of invented sessions; to every port there is."""
    attacker = world.attacker
    rng = attacker.rng
    ports = [IN, RECORDED, CAST, honest.CONTROL]
    streams = [honest.IN, honest.RECORDED, honest.CAST, honest.SLOW, CONTROL_STREAM]
    for _ in _paced(range(9000), 4500):
        ids = {"session_id": attacker.session_id(), "stream_id": rng.choice(streams)}
        frame: raw.Frame | bytes = rng.choice(
            [
                raw.Rttm(**ids, echo=rng.randrange(1 << 62), flags=rng.choice([0, raw.RTTM_REQUEST])),
                raw.Error(**ids, code=rng.randrange(20), text=rng.randbytes(rng.randrange(600))),
                raw.Nak(**ids, term_id=attacker.session_id(), term_offset=0, gap=2**31 - 1),
                raw.Status(**ids, window=2**31 - 1, flags=rng.randrange(256)),
                raw.ResponseSetup(**ids, response_session_id=attacker.session_id()),
                raw.Setup(**ids, initial_term_id=0, active_term_id=rng.randrange(-5, 2**31), ttl=rng.randrange(300)),
            ]
        )
        if variant == 2:
            data = bytearray(frame.encode())
            data[rng.randrange(len(data))] = rng.randrange(256)
            frame = bytes(data)
        attacker.send(frame, rng.choice(ports), attacker.neighbour() if variant else None)


@attack(2)
def wildcard_errors_and_ends(world: World, variant: int) -> None:
    """To dynamic destinations: errors and ends of unknown receivers, and endless requests for SETUPs."""
    attacker = world.attacker
    for number in _paced(range(2000), 1000):
        frame: raw.Frame
        if variant == 0:
            frame = raw.Status(stream_id=honest.CAST, flags=raw.STATUS_EOS, receiver_id=attacker.rng.randrange(1 << 62))
        else:
            frame = raw.Status(stream_id=honest.CAST, flags=raw.SEND_SETUP, receiver_id=number % 3)
        attacker.send(frame, CAST, (attacker.host.address, 20_000 + number % 3))


@attack(1)
def sessions_that_say_they_are_honest(world: World, variant: int) -> None:
    """Wrong passwords, as if from the honest peer's address."""
    for number in range(60):
        stream = _control(world, (honest.FRIEND, 30_000 + number))
        stream.offer(_connect_request(world, f"aeron:udp?endpoint={honest.FRIEND}:31000", b"honest:wrong"))


@attack(4)
def everything_at_once(world: World, variant: int) -> None:
    """Several of the others, one after the other without a pause."""
    rng = world.attacker.rng
    others = [one for name, one in ATTACKS.items() if name != "everything_at_once"]
    for one in rng.sample(others, 3):
        one.act(world, rng.randrange(one.variants))
