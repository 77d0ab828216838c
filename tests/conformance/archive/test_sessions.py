"""Control sessions: connecting, authentication, what each may ask for, how they end, limits. Spec: 07 §4, §6-8, 08 §2.3.

Scenarios 1 to 13, 15 to 17, 25 and 26 of Spec: 08 §19, and 14 for the sessions themselves.

Spec: 11 D23, D24, D26, D27, D28.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from aeron_spark._native._lib import lib
from tests.conformance.archive import codec, folder
from tests.conformance.archive.archive import (
    CONTROL_SESSION,
    CONTROL_SESSIONS,
    CYCLES_EXCEEDED,
    ERRORS,
    IS_OURS,
    LOCAL_CONTROL,
    MAX_CYCLE,
    RECORDING_SESSIONS,
    Archive,
    ours,
)
from tests.conformance.archive.codec import (
    ACTIVE_LISTING,
    AUTHENTICATION_REJECTED,
    ERROR,
    LOCAL,
    MAX_RECORDINGS,
    OK,
    STORAGE_SPACE,
    UNAUTHORISED_ACTION,
    UNKNOWN_RECORDING,
    Message,
)
from tests.conformance.archive.control import Control, Session
from tests.conformance.archive.streams import IPC, Replay, Stream, assert_messages, begin, record
from tests.kit import dirs
from tests.kit.ports import free_port
from tests.kit.wait import wait_until

Archives = Callable[[dict[str, str]], Archive]
V1_99 = 1 << 16 | 99 << 8
V2 = 2 << 16
ITERATIONS = 1000


@pytest.fixture
def control(archive: Archive, opened: ExitStack) -> Control:
    """Streams of a session that is not connected yet."""
    return opened.enter_context(Control(archive))


def error_of(answer: Message) -> tuple[int, str]:
    """Code and text of an answer that is an ERROR."""
    assert answer.code == ERROR, answer
    return answer.relevantId, answer.errorMessage


def await_no_sessions(archive: Archive) -> None:
    """Wait until the sessions of tests before have ended, or that of this one has."""
    archive.await_counter(CONTROL_SESSIONS, 0)


def await_repeats(control: Control, correlation_id: int, count: int) -> list[tuple[float, Message]]:
    """The answers to a connect request with the time each was seen at."""
    seen: list[tuple[float, Message]] = []

    def enough() -> bool:
        mine = control.seen("ControlResponse", lambda it: it.correlationId == correlation_id)
        seen.extend((time.monotonic(), message) for message in mine[len(seen) :])
        return len(seen) >= count

    wait_until(enough, 10, f"{count} answers", state=lambda: control.inbox)
    return seen


# -- connecting ------------------------------------------------------------------------------------------------------------


def test_s01_a_connect_of_a_later_minor_version_is_answered(control: Control) -> None:
    """OK of 44 bytes: relevantId is the session's id, the version the archive's, the correlation id the request's."""
    answer = control.answer(control.connect(version=V1_99))
    assert (answer.code, answer.relevantId, answer.version) == (OK, answer.controlSessionId, codec.PROTOCOL_VERSION)
    assert len(answer.raw) == 44


def test_s02_the_answer_is_repeated_until_the_first_request(control: Control) -> None:
    """The same OK about every 200 ms; after a KeepAlive no more."""
    begun = time.monotonic()
    correlation_id = control.connect()
    seen = await_repeats(control, correlation_id, 4)
    assert len({message.raw for _, message in seen}) == 1
    assert seen[-1][0] - begun > 0.55, "four answers lie three intervals of 200 ms apart"
    control.session_id = seen[0][1].controlSessionId
    control.request("KeepAliveRequest")
    control.barrier()
    control.inbox.clear()
    before = time.monotonic()
    wait_until(lambda: time.monotonic() - before > 0.5, 5, "two intervals to pass")
    assert {message.name for message in control.seen()} <= {"Ping"}


def test_s03_another_major_version_is_refused_until_the_deadline(impatient: Archive, opened: ExitStack) -> None:
    """An ERROR every 200 ms whose relevant id is the session's, and the session ends after the connect timeout."""
    await_no_sessions(impatient)
    control = opened.enter_context(Control(impatient))
    seen = await_repeats(control, control.connect(version=V2), 2)
    session_id = seen[0][1].controlSessionId
    assert error_of(seen[0][1]) == (session_id, "invalid client version 2.0.0, archive is 1.12.0")
    assert seen[1][1].raw == seen[0][1].raw
    control.await_gone()
    await_no_sessions(impatient)


@ours("Spec: 11 A2 - 1.53 has no ConnectRequest any more; 1.52 answers clients from before 2019")
def test_s04_a_connect_request_of_old_is_passed_over(impatient: Archive, opened: ExitStack) -> None:
    """ConnectRequest, template 2: no session, no counter, no answer within the connect timeout, no error."""
    await_no_sessions(impatient)
    errors = impatient.counter(ERRORS)
    control = opened.enter_context(Control(impatient))
    message = codec.encode(
        "ConnectRequest",
        correlationId=4711,
        responseStreamId=control.response_stream_id,
        version=codec.PROTOCOL_VERSION,
        responseChannel=control.response_channel,
    )
    control.send(message)
    before = time.monotonic()
    while time.monotonic() - before < 1:
        assert (impatient.counter(CONTROL_SESSIONS), impatient.counters(CONTROL_SESSION)) == (0, [])
        assert control.seen() == []
    assert impatient.counter(ERRORS) == errors


@pytest.mark.parametrize("version", [14, 15])
def test_s17_later_schema_versions_are_answered(archive: Archive, control: Control, version: int) -> None:
    """Whatever newer schema the header of a request names: it is answered as ever."""
    connect = codec.encode(
        "AuthConnectRequest",
        schema_version=version,
        correlationId=4711,
        responseStreamId=control.response_stream_id,
        responseChannel=control.response_channel,
    )
    control.send(connect)
    connected = control.answer(4711)
    assert connected.code == OK
    control.send(
        codec.encode(
            "ArchiveIdRequest",
            schema_version=version,
            controlSessionId=connected.controlSessionId,
            correlationId=4712,
        )
    )
    answer = control.answer(4712)
    assert (answer.code, answer.relevantId) == (OK, folder.archive_id(archive.archive_dir))


# -- who gets in -------------------------------------------------------------------------------------------------------------


def client_key(password: str, salt: bytes) -> bytes:
    """RFC 5802's ClientKey."""
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, ITERATIONS)
    return hmac.digest(salted, b"Client Key", "sha256")


def answer_to(challenge: bytes, password: str) -> bytes:
    """What ours wants to hear of who knows the password; the stock archive's authenticator of these tests takes it plain."""
    if not IS_OURS:
        return password.encode()
    kind, iterations, salt, _ = challenge.decode().split(" ")
    assert (kind, int(iterations)) == ("scram-sha-256", ITERATIONS)
    key = client_key(password, bytes.fromhex(salt))
    signature = hmac.digest(hashlib.sha256(key).digest(), challenge, "sha256")
    return bytes(a ^ b for a, b in zip(key, signature, strict=True)).hex().encode()


@pytest.fixture(scope="module")
def guarded() -> Iterator[Archive]:
    """An archive with two users: alice may do everything, bob list and replay. Timeouts are 0.6 s."""
    settings = {"aeron.archive.connect.timeout": "600ms"}
    with dirs.fresh("users") as folder:
        if IS_OURS:
            settings["aeron.spark.archive.credentials.file"] = str(_credentials(folder / "users"))
        else:
            settings["aeron.archive.authenticator.supplier"] = "peers.UsersAuthenticatorSupplier"
        with Archive(settings) as archive:
            yield archive


def _credentials(path: Path) -> Path:
    lines = []
    for name, password, actions in (("alice", "open sesame", "all"), ("bob", "b:ob", "query,replay")):
        salt = name.encode().ljust(16, b"-")
        stored = hashlib.sha256(client_key(password, salt)).hexdigest()
        lines.append(f"{name} scram-sha-256${ITERATIONS}${salt.hex()}${stored} {actions}\n")
    path.touch(0o600)
    path.write_text("".join(lines))
    return path


def log_in(opened: ExitStack, archive: Archive, credentials: bytes) -> Session:
    """A session that is authenticated at once."""
    return opened.enter_context(Session(archive, fields={"encodedCredentials": credentials}))


def test_s05_a_right_answer_to_the_challenge_opens_the_session(guarded: Archive, opened: ExitStack) -> None:
    """The challenge carries the connect request's correlation id, the OK that of the answer; before it nothing is served."""
    control = opened.enter_context(Control(guarded))
    challenge = control.expect("Challenge", _mine(control.connect(encodedCredentials=b"alice")))
    control.session_id = challenge.controlSessionId
    early = control.request("ArchiveIdRequest")
    correlation_id = control.request(
        "ChallengeResponse", encodedCredentials=answer_to(challenge.encodedChallenge, "open sesame")
    )
    answer = control.answer(correlation_id)
    assert (answer.code, answer.relevantId) == (OK, control.session_id)
    control.barrier()
    assert not control.seen("ControlResponse", _mine(early))


def _mine(correlation_id: int) -> Callable[[Message], bool]:
    return lambda it: it.correlationId == correlation_id


def test_s06_wrong_credentials_are_rejected(guarded: Archive, opened: ExitStack) -> None:
    """ERROR 10 repeated until the deadline; requests of such a session get nothing."""
    wrong = [b"", b"alice:", b"alice:open", b"mallory:open sesame", b"\x00:\xff", b"bob:bob"]
    controls = [opened.enter_context(Control(guarded)) for _ in wrong]
    requests = [control.connect(encodedCredentials=one) for control, one in zip(controls, wrong, strict=True)]
    answers = [control.answer(one) for control, one in zip(controls, requests, strict=True)]
    listings = []
    for control, answer in zip(controls, answers, strict=True):
        assert error_of(answer) == (AUTHENTICATION_REJECTED, "authentication rejected")
        control.session_id = answer.controlSessionId
        listings.append(control.request("ListRecordingsRequest", fromRecordingId=0, recordCount=10))

    def are_gone() -> bool:
        for control in controls:
            control.poll()
        return not any(control.is_connected for control in controls)

    wait_until(are_gone, 10, "the sessions to end")
    for control, correlation_id, answer, listing in zip(controls, requests, answers, listings, strict=True):
        repeated = control.seen("ControlResponse", _mine(correlation_id))
        assert {message.raw for message in repeated} == {answer.raw}
        assert not control.seen(None, _mine(listing))
    assert not [text for text in guarded.errors() if "sesame" in text or "bob:" in text]


def test_s06_a_wrong_answer_to_a_challenge_is_rejected(guarded: Archive, opened: ExitStack) -> None:
    """ERROR 10 with the answer's correlation id."""
    control = opened.enter_context(Control(guarded))
    challenge = control.expect("Challenge", _mine(control.connect(encodedCredentials=b"alice")))
    control.session_id = challenge.controlSessionId
    correlation_id = control.request(
        "ChallengeResponse", encodedCredentials=answer_to(challenge.encodedChallenge, "open says me")
    )
    assert error_of(control.answer(correlation_id)) == (AUTHENTICATION_REJECTED, "authentication rejected")


def test_s07_denied_requests(archives: Archives, opened: ExitStack) -> None:
    """With DENY_ALL every request gets E13, the KeepAlive of connecting included."""
    denying = archives({"aeron.archive.authorisation.service.supplier": "DENY_ALL"})
    control = opened.enter_context(Control(denying))
    control.session_id = control.answer(control.connect()).controlSessionId
    for name, fields in (
        ("StartRecordingRequest2", {"channel": IPC, "streamId": 1, "sourceLocation": LOCAL}),
        ("ArchiveIdRequest", {}),
        ("ListRecordingsRequest", {"recordCount": 1}),
    ):
        assert error_of(control.answer(control.request(name, **fields))) == (UNAUTHORISED_ACTION, "unauthorised action")


@pytest.mark.skipif(not IS_OURS, reason="the stock archive has no credentials file")
def test_s07_users_do_what_their_line_allows(guarded: Archive, opened: ExitStack, stream: int) -> None:
    """Bob lists and replays; he starts nothing and can't stop what alice replays."""
    alice, bob = log_in(opened, guarded, b"alice:open sesame"), log_in(opened, guarded, b"bob:b:ob")
    run = begin(alice, stream)
    run.write(20)
    denied = bob.refused("StartRecordingRequest2", channel=IPC, streamId=stream, sourceLocation=LOCAL)
    assert error_of(denied) == (UNAUTHORISED_ACTION, "unauthorised action")
    assert bob.descriptor(run.recording_id).streamId == stream
    with Replay(alice, run.recording_id) as replay:
        refused = bob.refused("StopReplayRequest", replaySessionId=replay.session_id)
        assert refused.relevantId == UNAUTHORISED_ACTION
        bob.ok("StopAllReplaysRequest", recordingId=run.recording_id)
        assert_messages(replay.read_to(run.write(20)), run, 40)
    run.stop()
    run.publication.close()


# -- requests of a session ---------------------------------------------------------------------------------------------------


def test_s08_the_archive_id_is_the_mark_files(archive: Archive, session: Session) -> None:
    """ArchiveIdRequest is answered with what the mark file says."""
    raw = (archive.archive_dir / "archive-mark.dat").read_bytes()[:136]
    assert session.ok("ArchiveIdRequest") == struct.unpack_from("<q", raw, 64)[0]


def test_s12_requests_of_unknown_sessions_are_logged_and_not_answered(archive: Archive, session: Session) -> None:
    """No response, a warning, and other sessions go on."""
    unknown = session.session_id + 1000
    correlation_id = session.request("StartPositionRequest", controlSessionId=unknown, recordingId=0)
    session.barrier()
    assert not session.seen(None, _mine(correlation_id))
    if IS_OURS:
        archive.await_error(f"WARN - control request for unknown session: controlSessionId={unknown} templateId=52")


def test_s13_one_listing_at_a_time(session: Session, stream: int) -> None:
    """While a listing waits for the client, a second one is E1; the first continues when the client reads again."""
    run = record(session, stream, count=1)
    for _ in range(500):
        session.request("ArchiveIdRequest")  # 96 bytes of answer each: the response window of 32 KiB is full
    first = session.request("ListRecordingsRequest", fromRecordingId=run.recording_id, recordCount=1)
    second = session.request("ListRecordingsRequest", fromRecordingId=run.recording_id, recordCount=1)
    assert error_of(session.answer(second)) == (ACTIVE_LISTING, "active listing already in progress")
    assert session.expect("RecordingDescriptor", _mine(first)).recordingId == run.recording_id


def test_s16_what_is_no_message_of_the_protocol_is_passed_over(archive: Archive, session: Session) -> None:
    """Another schema is logged, an unknown template is not, and the session continues."""
    session.send(codec.header(68, 16, schema=99) + bytes(16))
    session.send(codec.header(999, 16) + bytes(16))
    session.barrier()
    archive.await_error("ERROR - expected schemaId=101, actual=99")
    assert {message.name for message in session.seen()} <= {"Ping"}


def test_s17_a_replay_of_an_older_schema_version(session: Session, stream: int) -> None:
    """A ReplayRequest of version 6 (block of 44 bytes) is decoded with the defaults."""
    run = record(session, stream, count=10)
    replay_stream = stream + 100_000
    subscription = session.archive.client.add_subscription(IPC, replay_stream)
    message = codec.encode(
        "ReplayRequest",
        schema_version=6,
        block_length=44,
        controlSessionId=session.session_id,
        correlationId=1,
        recordingId=run.recording_id,
        position=0,
        length=-1,
        replayStreamId=replay_stream,
        replayChannel=IPC,
    )
    session.send(message)
    answer = session.answer(1)
    assert answer.code == OK, answer
    wait_until(lambda: subscription.is_connected, 10, "the replay to come")
    session.ok("StopReplayRequest", replaySessionId=answer.relevantId)
    subscription.close()


def test_s17_a_replication_of_an_older_schema_version(session: Session) -> None:
    """A ReplicateRequest2 of version 6 (block of 60 bytes, three texts) is decoded with the defaults."""
    message = codec.encode(
        "ReplicateRequest2",
        schema_version=6,
        block_length=60,
        controlSessionId=session.session_id,
        correlationId=2,
        srcRecordingId=0,
        dstRecordingId=987_654,
        srcControlStreamId=10,
        srcControlChannel=LOCAL_CONTROL,
        encodedCredentials=None,
        srcResponseChannel=None,
    )
    session.send(message)
    assert error_of(session.answer(2)) == (UNKNOWN_RECORDING, "unknown destination recording id 987654")


# -- ends --------------------------------------------------------------------------------------------------------------------


def test_s09_a_closed_session_leaves_nothing(archive: Archive, opened: ExitStack) -> None:
    """No answer; the response image ends as revoked; counters 102 and 113 are as before."""
    await_no_sessions(archive)
    session = opened.enter_context(Session(archive))
    archive.await_counter(CONTROL_SESSIONS, 1)
    counter = session_counter(archive, session)
    assert "control-session: name=conformance sourceIdentity=aeron:ipc sessionId=" in counter
    (image,) = session.subscription.images()
    session.end()
    session.await_gone()
    with image._use() as pointer:
        assert lib.as_image_is_publication_revoked(pointer)
    image.close()
    assert session.seen("ControlResponse") == []
    await_no_sessions(archive)
    wait_until(lambda: archive.session_counter(session.session_id) is None, 10, "counter 113 to be freed")


def session_counter(archive: Archive, session: Session) -> str:
    """Label of counter 113."""
    return wait_until(
        lambda: (found := archive.session_counter(session.session_id)) and found.label, 10, "counter 113 of the session"
    )


def test_s10_a_client_that_goes_takes_its_session_with_it(archive: Archive, opened: ExitStack) -> None:
    """The session is removed when its request publication is gone, and that is no error."""
    await_no_sessions(archive)
    session = opened.enter_context(Session(archive))
    session.publication.close()
    session.await_gone()
    await_no_sessions(archive)
    # Of this session: the log may still get what tests before have caused, as how often an error came again.
    assert [one for one in archive.errors() if f"controlSessionId={session.session_id} " in one] == []


def test_s11_a_client_that_does_not_read_is_given_up(impatient: Archive, opened: ExitStack) -> None:
    """After the connect timeout without a response getting through the session ends, and its requests' image is rejected."""
    await_no_sessions(impatient)
    session = opened.enter_context(Session(impatient))
    for _ in range(600):
        session.request("ArchiveIdRequest")
    assert "WARN - controlSessionId=" in impatient.await_error(
        "terminated: failed to send response for more than connectTimeoutMs=600"
    )
    await_no_sessions(impatient)
    wait_until(lambda: not session.publication.is_connected, 10, "the requests' image to be rejected")


def test_several_sessions_are_served_side_by_side(
    archive: Archive, sessions: Callable[..., Session], streams: Callable[[], int]
) -> None:
    """Each gets its own answers and the signals of its own recordings, and one that ends disturbs no other."""
    many = [sessions() for _ in range(5)]
    runs = [record(session, streams(), count=5) for session in many]
    assert len({session.session_id for session in many}) == 5
    many[2].end()
    many[2].await_gone()
    for session, run in zip(many, runs, strict=True):
        if session is not many[2]:
            session.barrier()
            assert session.descriptor(run.recording_id).recordingId == run.recording_id
            assert not session.seen("RecordingSignalEvent", lambda it, run=run: it.recordingId != run.recording_id)


# -- channels ----------------------------------------------------------------------------------------------------------------


def udp_sockets(pid: int) -> set[str]:
    """Local addresses of a process's UDP sockets."""
    inodes = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            inodes.add(str(link.readlink()).removeprefix("socket:[").removesuffix("]"))
        except OSError:
            continue
    lines = [
        line.split() for name in ("udp", "udp6") for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()
    ]
    return {words[1] for words in lines[1:] if len(words) > 9 and words[9] in inodes}


def test_s15_without_the_network_channel_no_port_is_bound(opened: ExitStack) -> None:
    """Connecting over IPC works, and neither driver nor archive holds a UDP socket."""
    extra = {} if IS_OURS else {"aeron.archive.control.response.channel": "aeron:udp?endpoint=127.0.0.1:0"}
    archive = opened.enter_context(Archive(extra, control=False))
    opened.enter_context(Session(archive)).barrier()
    assert udp_sockets(archive.process.pid) == set()


def test_s14_sessions_over_the_network_and_over_response_channels(archive: Archive, opened: ExitStack) -> None:
    """UDP with an endpoint, and `control-mode=response` over UDP and IPC, without a session id on the channels."""
    pairs = [
        (archive.control_channel, f"aeron:udp?endpoint=127.0.0.1:{free_port()}"),
        (
            f"{archive.control_channel}|response-correlation-id={{subscription}}",
            f"aeron:udp?control-mode=response|control=127.0.0.1:{free_port()}",
        ),
        (f"{LOCAL_CONTROL}|response-correlation-id={{subscription}}", "aeron:ipc?control-mode=response"),
    ]
    for channel, response_channel in pairs:
        session = opened.enter_context(Session(archive, channel=channel, response_channel=response_channel))
        session.barrier()
        assert session.ok("FindLastMatchingRecordingRequest", streamId=-7, channel="") == codec.NULL


# -- limits ------------------------------------------------------------------------------------------------------------------


def test_cycles_beyond_their_threshold_are_counted(archives: Archives, opened: ExitStack) -> None:
    """A conductor that takes longer for a cycle than it may is seen in two counters: how often, and for how long at most."""
    archive = archives({"aeron.archive.conductor.cycle.threshold": "1us"})
    session = opened.enter_context(Session(archive))
    before = archive.counter(CYCLES_EXCEEDED)
    session.barrier()
    wait_until(lambda: archive.counter(CYCLES_EXCEEDED) > before, 10, "a long cycle to be counted")
    assert archive.counter(MAX_CYCLE) > 1000
    assert "threshold=1us" in archive.counters(CYCLES_EXCEEDED)[0].label


def test_s25_no_more_recordings_than_allowed(archives: Archives, opened: ExitStack, streams: Callable[[], int]) -> None:
    """E8 for the request; active recordings continue."""
    archive = archives({"aeron.archive.max.concurrent.recordings": "1"})
    session = opened.enter_context(Session(archive))
    first = streams()
    subscription = session.ok("StartRecordingRequest2", channel=IPC, streamId=first, sourceLocation=LOCAL)
    stream = Stream(archive.client, IPC, first)
    session.signal(codec.START)
    refused = session.refused("StartRecordingRequest2", channel=IPC, streamId=streams(), sourceLocation=LOCAL)
    assert error_of(refused) == (MAX_RECORDINGS, "max concurrent recordings reached 1")
    session.ok("StopRecordingSubscriptionRequest", subscriptionId=subscription)
    session.signal(codec.STOP)
    stream.publication.close()
    again = record(session, streams(), count=1)
    assert again.recording_id >= 0


def started(session: Session, stream_id: int) -> int:
    """A recording without a publisher; the subscription id."""
    return session.ok("StartRecordingRequest2", channel=IPC, streamId=stream_id, sourceLocation=LOCAL)


def start_refused(session: Session, stream_id: int) -> tuple[int, str]:
    """Code and text."""
    return error_of(session.refused("StartRecordingRequest2", channel=IPC, streamId=stream_id, sourceLocation=LOCAL))


@ours("Spec: 11 A4 - 1.52 counts sessions only, 1.53 never gives the slot of a request back that had none")
def test_s25_an_accepted_request_holds_a_slot(
    archives: Archives, opened: ExitStack, streams: Callable[[], int]
) -> None:
    """Two requests without publishers take both slots; a stop frees one, and only one."""
    session = opened.enter_context(Session(archives({"aeron.archive.max.concurrent.recordings": "2"})))
    started(session, streams())
    second = started(session, streams())
    assert start_refused(session, streams()) == (MAX_RECORDINGS, "max concurrent recordings reached 2")
    session.ok("StopRecordingSubscriptionRequest", subscriptionId=second)
    started(session, streams())
    assert start_refused(session, streams()) == (MAX_RECORDINGS, "max concurrent recordings reached 2")


@ours("Spec: 11 A4 - 1.52 counts sessions only")
def test_s25_an_accepted_extension_holds_a_slot(
    archives: Archives, opened: ExitStack, streams: Callable[[], int]
) -> None:
    """Two stopped recordings, one slot: the second extension is refused although no publisher came to the first."""
    session = opened.enter_context(Session(archives({"aeron.archive.max.concurrent.recordings": "1"})))
    first, second = (record(session, streams(), count=1) for _ in range(2))
    extend = {"sourceLocation": LOCAL, "channel": IPC}
    session.ok("ExtendRecordingRequest2", recordingId=first.recording_id, streamId=first.stream_id, **extend)
    refused = session.refused(
        "ExtendRecordingRequest2", recordingId=second.recording_id, streamId=second.stream_id, **extend
    )
    assert error_of(refused) == (MAX_RECORDINGS, "max concurrent recordings reached at 1")


@ours("Spec: 11 A4 - 1.52 counts sessions only, 1.53 gives back more slots than were taken")
def test_s25_each_image_takes_a_slot_and_gives_it_back(
    archives: Archives, opened: ExitStack, streams: Callable[[], int]
) -> None:
    """Three publishers of one stream are three recordings; when all have ended there are three slots, and no fourth."""
    archive = archives({"aeron.archive.max.concurrent.recordings": "3"})
    session = opened.enter_context(Session(archive))
    stream = streams()
    started(session, stream)
    publications = [Stream(archive.client, IPC, stream) for _ in range(3)]
    archive.await_counter(RECORDING_SESSIONS, 3)
    assert start_refused(session, streams()) == (MAX_RECORDINGS, "max concurrent recordings reached 3")
    for publication in publications:
        publication.publication.close()
    archive.await_counter(RECORDING_SESSIONS, 0)
    for _ in range(3):
        started(session, streams())
    assert start_refused(session, streams()) == (MAX_RECORDINGS, "max concurrent recordings reached 3")


def test_s26_no_recording_where_space_is_low(archives: Archives, opened: ExitStack, stream: int) -> None:
    """E11 names threshold and usable space."""
    archive = archives({"aeron.archive.low.storage.space.threshold": "1000000g"})
    session = opened.enter_context(Session(archive))
    refused = session.refused("StartRecordingRequest2", channel=IPC, streamId=stream, sourceLocation=LOCAL)
    code, text = error_of(refused)
    assert code == STORAGE_SPACE
    assert text.startswith(f"low storage threshold={1_000_000 << 30} <= usableSpace=")
