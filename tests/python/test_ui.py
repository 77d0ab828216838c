"""`aeron-spark ui`: who gets an answer, what the answers say, and that each is bounded.

Method: a real server over real folders, or over a fixed moment (`tests/kit/live_scene.py`), asked by raw requests as a browser
and as an attacker send them. How the page looks and works is in tests/system/test_ui_page.py.
"""

from __future__ import annotations

import http.client
import itertools
import json
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import pytest

from aeron_spark import Client
from aeron_spark.errors import StorageError, UsageError
from aeron_spark.live.compare import facts
from aeron_spark.live.reader import Reader
from aeron_spark.live.snapshot import Snapshot
from aeron_spark.testing import RecordedFolder, Servers
from aeron_spark.ui import answers, watch
from aeron_spark.ui.app import MAX_BODY_BYTES
from aeron_spark.ui.messages import MAX_HEX_BYTES
from aeron_spark.ui.server import UiServer, read_token
from aeron_spark.ui.watch import Watch
from tests.kit import hiding, live_scene, moments, packed
from tests.kit.market import SCHEMA, quote, trade
from tests.kit.ui_server import Scene, served
from tests.kit.wait import wait_until

LINES = [f"line {number}" for number in range(120)]
QUOTES = [trade(number) if number % 5 == 4 else quote(number) for number in range(100)]
JSON = "application/json"
GOLDEN = Path(__file__).parents[1] / "golden" / "archive"


def asked(server: UiServer, path: str, method: str = "GET", body: str | None = None, **headers: str) -> tuple[int, str]:
    """Status and body; headers by their names with _ for -."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        sent = {name.replace("_", "-"): text for name, text in headers.items()}
        connection.request(method, path, body=None if body is None else body.encode(), headers=sent)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def found(server: UiServer, path: str, **query: object) -> Any:
    status, body = asked(server, f"/api/{path}?{urlencode(query)}")
    assert status == 200, body
    return json.loads(body)


def shown(server: UiServer, **query: object) -> Any:
    """A message, asked for as the page does."""
    own = f"http://127.0.0.1:{server.port}"
    body = json.dumps({name: str(value) for name, value in query.items()})
    status, text = asked(server, "/api/message", "POST", body, Origin=own, Content_Type=JSON)
    assert status == 200, text
    return json.loads(text)


@pytest.fixture(scope="module")
def recorded() -> Iterator[tuple[Servers, RecordedFolder]]:
    """0: lines; 1: quotes and trades; 2: a time index of many entries; 3, 4: many values; 5: one; 6: moments; 7: OTHER."""
    with Servers() as servers:
        folder = RecordedFolder(servers)
        folder.write(LINES)
        folder.write(QUOTES, stream_id=7)
        folder.write([bytes(1000)] * 3000, stream_id=8)
        many = struct.pack("<6H", 0, 1, 9, 0, 1, 20_000)
        folder.write([many + bytes(20_000)], stream_id=9)
        folder.write([many + bytes(70_000)], stream_id=10)
        folder.write(["one"], stream_id=11)
        folder.write(moments.MESSAGES, stream_id=12)
        folder.write([hiding.OTHER], stream_id=13)
        yield servers, folder


@pytest.fixture(scope="module")
def server(recorded: tuple[Servers, RecordedFolder]) -> Iterator[UiServer]:
    """Over the folder of those recordings and its live driver."""
    servers, folder = recorded
    with served(Watch([str(servers.aeron_dir)], [str(folder.path)])) as running:
        yield running


# -- who gets an answer ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/main.js", "/api/overview", "/api/message"])
def test_only_its_own_names_are_answered(server: UiServer, path: str) -> None:
    """A page of another site reaches it by a name of its own (DNS rebinding), but the name tells."""
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "10.0.0.1", "[::2]", "", "localhost."):
        assert asked(server, path, Host=host)[0] == 403, host
    if path == "/":
        for host in ("localhost", "LOCALHOST:1", "127.0.0.1:8321", "[::1]:8321"):
            assert asked(server, path, Host=host)[0] == 200, host


def test_pages_of_other_sites_get_nothing(server: UiServer) -> None:
    own = {"Host": f"localhost:{server.port}"}
    for origin in ("http://evil.example", "null", "https://localhost", f"http://localhost:{server.port + 1}", ""):
        assert asked(server, "/api/overview", Origin=origin, **own)[0] == 403, origin
    for site in ("cross-site", "same-site"):
        assert asked(server, "/api/overview", Sec_Fetch_Site=site, **own)[0] == 403, site
    assert (
        asked(server, "/api/overview", Origin=f"http://localhost:{server.port}", Sec_Fetch_Site="same-origin", **own)[0]
        == 200
    )


def test_a_schema_is_taken_from_the_page_alone(server: UiServer) -> None:
    own = f"http://127.0.0.1:{server.port}"
    body = json.dumps({"recording": "0", "position": "0"})
    assert asked(server, "/api/message", "POST", body, Content_Type=JSON)[0] == 403
    assert asked(server, "/api/message", "POST", body, Content_Type=JSON, Origin="http://evil.example")[0] == 403
    assert asked(server, "/api/message", "POST", body, Content_Type="text/plain", Origin=own)[0] == 415
    for wrong in ("", "[]", '{"recording": 0}', "{", "[" * 100_000, '{"a": {"b": "c"}}'):
        assert asked(server, "/api/message", "POST", wrong, Content_Type=JSON, Origin=own)[0] == 400, wrong[:20]
    # It is refused by its length, before it is sent.
    announced = {"Content_Length": str(MAX_BODY_BYTES + 1), "Content_Type": JSON, "Origin": own}
    assert asked(server, "/api/message", "POST", "", **announced)[0] == 413
    assert asked(server, "/api/message", "POST", body, Content_Type=JSON, Origin=own)[0] == 200


def test_it_only_reads(server: UiServer) -> None:
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert asked(server, "/api/overview", method)[0] == 405, method
    own = f"http://127.0.0.1:{server.port}"
    assert asked(server, "/api/overview", "POST", "{}", Content_Type=JSON, Origin=own)[0] == 404
    assert asked(server, "/", "POST", "{}", Content_Type=JSON, Origin=own)[0] == 404
    status, body = asked(server, "/api/overview", "HEAD")
    assert (status, body) == (200, "")


def test_no_path_names_a_file(server: UiServer) -> None:
    for path in (
        "/../etc/passwd",
        "/%2e%2e/etc/passwd",
        "/..%2fserver.py",
        "//etc/passwd",
        "/page/main.js",
        "/api",
        "/api/",
        "/x",
    ):
        assert asked(server, path)[0] == 404, path
    for query in ({"archive": 1}, {"archive": -1}, {"archive": "/etc"}, {"archive": "../etc"}, {"archive": "²"}):
        assert found(server, "messages", recording=0, **query)["is_usage"], query


def test_each_answer_forbids_what_the_page_does_not_need(server: UiServer) -> None:
    for path in ("/", "/api/overview", "/nothing"):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        headers = answer.headers
        connection.close()
        policy = headers["Content-Security-Policy"].split("; ")
        assert {"default-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"} == set(policy)
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert headers["Cache-Control"] == "no-store"
        assert headers["Access-Control-Allow-Origin"] is None
        assert headers["Server"] is None


def test_another_address_wants_the_token() -> None:
    with served(Scene(), listen="0.0.0.0:0") as server:
        token = server.url.partition("#token=")[2]
        assert len(token) >= 32
        assert asked(server, "/")[0] == 200  # the page is no secret; it asks for the token
        for wrong in (
            {},
            {"Authorization": ""},
            {"Authorization": f"Bearer {token}x"},
            {"Authorization": "Bearer \xe4"},
        ):
            assert asked(server, "/api/overview", **wrong)[0] == 401, wrong
        assert asked(server, f"/api/overview?token={token}")[0] == 401  # logs of proxies have addresses
        assert asked(server, "/api/overview", Authorization=f"Bearer {token}")[0] == 200
        # Its address may be asked for, and no foreign name.
        assert asked(server, "/api/overview", Authorization=f"Bearer {token}", Host="10.1.2.3:80")[0] == 200
        assert asked(server, "/api/overview", Authorization=f"Bearer {token}", Host="evil.example")[0] == 403
    with served(Scene(), listen="0.0.0.0:0") as other:
        assert other.url.partition("#token=")[2] != token


def test_a_token_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("0123456789abcdef\n", "ascii")
    with served(Scene(), token=read_token(str(file))) as server:
        assert server.url.endswith("/#token=0123456789abcdef")
        assert asked(server, "/api/overview")[0] == 401
    for wrong in ("", "short", "two words of a token", "x" * 300, "sixteen\x00characters", "0123456789abcdéf"):
        file.write_text(wrong, "utf-8")
        with pytest.raises(UsageError, match="holds no token"):
            read_token(str(file))
    with pytest.raises(StorageError, match="No such file"):
        read_token(str(tmp_path / "missing"))


def test_an_address_in_use_is_told(server: UiServer) -> None:
    with pytest.raises(StorageError, match=r"cannot listen on 127\.0\.0\.1:\d+: Address already"):
        UiServer(f"127.0.0.1:{server.port}", Scene())
    with pytest.raises(UsageError, match=r"is no HOST:PORT to listen on, for example 127\.0\.0\.1:8321"):
        UiServer("8321", Scene())


def test_idle_connections_do_not_end_it(server: UiServer) -> None:
    idle = [http.client.HTTPConnection("127.0.0.1", server.port, timeout=60) for _ in range(40)]
    for one in idle:
        one.connect()
    assert asked(server, "/api/overview")[0] == 200
    for one in idle:
        one.close()


def test_who_holds_connections_locks_nobody_out(server: UiServer) -> None:
    """Unfinished requests, finished ones on connections that stay, and nothing at all: for less time than idle ones have."""
    for begun in (b"GET / HTTP/1.1\r\nX: ", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b""):
        held = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(80)]
        for one in held:
            one.sendall(begun)
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", server.port)) as browser:
                browser.settimeout(15)
                browser.sendall(b"GET /api/overview HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert browser.recv(12) == b"HTTP/1.1 200"
        for one in held:
            one.close()


# -- what the answers say ----------------------------------------------------------------------------------------------------


def test_streams_servers_and_recordings_of_a_moment() -> None:
    with served(Scene()) as server:
        overview = found(server, "overview")
        assert overview["flows"] == {"blocked": 2, "slow": 0, "no reader": 1, "ok": 1}
        disk = next(one for one in overview["servers"] if one["path"] == "/data/archive")
        assert (disk["full_in"], disk["free"], disk["used_share"]) == ("4h 33m", "410G", 0.795)
        assert "start a driver" in next(one for one in overview["servers"] if one["path"] == live_scene.GONE)["trouble"]
        rows = found(server, "streams", count=10)["rows"]
        assert [one["flow"] for one in rows] == ["blocked", "blocked", "no reader", "ok"]
        assert rows[0]["holder"] == "subscriber 31 (slow-reader)"
        assert [(one["role"], one["after"]) for one in rows[1]["parties"]] == [
            ("publisher", None), ("sender", 0), ("receiver", 1), ("subscriber", 2),
        ]  # fmt: skip
        assert rows[3]["recordings"] == ["7:4"]
        assert found(server, "stream", key=rows[0]["key"])["parties"][2]["name"].startswith("subscriber")
        assert found(server, "stream", key="gone")["error"] == "this stream is not there any more"
        tapes = found(server, "recordings", order="id")
        assert [(one["recording_id"], one["state"], one["length"]) for one in tapes["rows"]] == [
            ("3", "stopped", "640G"), ("4", "active", "2.0G"), ("5", "invalid", "65.5k"),
        ]  # fmt: skip
        assert found(server, "streams", filter="SLOW-reader")["total"] == 1
        assert [one["stream_id"] for one in found(server, "streams", order="id")["rows"]] == [1001, 1002, 1003, 1004]
        assert found(server, "streams", order="names")["error"] == "order is one of worst, rate, behind, id"


def test_a_thousand_streams_are_asked_for_by_the_window() -> None:
    """An answer has what fits a window, whatever there is, and whatever is asked for."""
    scene = Scene(facts(live_scene.many(1000), live_scene.many(1000, 0)))
    with served(scene) as server:
        status, body = asked(server, "/api/streams?start=990&count=20&order=id")
        assert status == 200
        part = json.loads(body)
        assert part["total"] == 1000
        assert [one["stream_id"] for one in part["rows"]] == list(range(991, 1001))
        assert len(asked(server, "/api/streams?count=100")[1]) < 200_000
        for query in (
            "count=101",
            "count=-1",
            "start=x",
            "start=99999999999999999999",
            "count=",
            "filter=" + 201 * "x",
        ):
            assert "error" in json.loads(asked(server, f"/api/streams?{query}")[1]), query
        assert asked(server, "/api/streams?filter=" + 5000 * "x")[0] == 414


def test_a_stream_of_many_readers_is_bounded() -> None:
    base = facts(live_scene.many(1), live_scene.many(1, 0))
    crowd = replace(base.streams[0], parties=base.streams[0].parties * 400)
    known = replace(base, streams=(crowd,))
    window = answers.Window.of({})
    assert (
        len(answers.streams(known, window)["rows"][0]["parties"]),
        answers.streams(known, window)["rows"][0]["more"],
    ) == (8, 1192)
    assert (len(answers.stream(known, crowd.key)["parties"]), answers.stream(known, crowd.key)["more"]) == (500, 700)


def test_the_first_look_after_a_pause_has_no_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    """They were over all that time in which nobody looked, as were errors that were new."""
    taken = iter([Snapshot(at_s=at, time_ms=0) for at in (0.0, 1.0, 21.0, 22.0)])
    monkeypatch.setattr(watch, "_FACTS_S", 0)
    monkeypatch.setattr(Reader, "snapshot", lambda _: next(taken))
    page = Watch([], [])
    assert [page.facts().seconds for _ in range(4)] == [None, 1.0, None, 1.0]


def test_findings_of_the_doctor(server: UiServer, recorded: tuple[Servers, RecordedFolder]) -> None:
    findings = found(server, "findings")["findings"]
    assert [one["level"] for one in findings] == sorted(
        (one["level"] for one in findings), key=["error", "warn", "ok"].index
    )
    assert any(str(recorded[1].path) in one["text"] for one in findings)
    assert any(one["about"] == "driver" for one in findings)


def test_live_streams_of_real_servers(server: UiServer, recorded: tuple[Servers, RecordedFolder]) -> None:
    servers, _ = recorded
    with Client(servers.aeron_dir, name="page") as client:
        with client.add_subscription("aeron:ipc", 4242), client.add_publication("aeron:ipc", 4242) as publication:
            wait_until(lambda: publication.offer(b"x") > 0, 30, "a message to be published")
            wait_until(
                lambda: any(
                    [party["role"] for party in one["parties"]] == ["publisher", "subscriber"]
                    for one in found(server, "streams", filter="4242")["rows"]
                ),
                30,
                "the stream with both its ends",
            )


# -- recordings and messages -------------------------------------------------------------------------------------------------


def test_a_recordings_segments_and_times(server: UiServer) -> None:
    one = found(server, "recording", recording=0)
    assert one["segments"][-1]["begin"] == "0"
    assert all(segment["is_there"] for segment in one["segments"])
    assert int(one["limit_position"]) == 64 * len(LINES)
    assert found(server, "recording", recording=99)["is_usage"]


def test_rates_over_time_add_up_to_the_recording(server: UiServer) -> None:
    """Pieces follow each other, and rate times span is what was recorded between them."""
    one = found(server, "recording", recording=2)
    rates = one["rates"]
    assert len(rates) > 5
    assert all(before["to_ms"] == after["from_ms"] for before, after in itertools.pairwise(rates))
    summed = sum(piece["rate"] * (piece["to_ms"] - piece["from_ms"]) / 1000 for piece in rates)
    # The last bytes may have the time of the ones before, and floats of nanoseconds since 1970 are not exact.
    assert 0.5 * int(one["limit_position"]) < summed < 1.1 * int(one["limit_position"])
    assert found(server, "recording", recording=5)["rates"] == []  # one entry has no length in time


def test_messages_by_position_and_time(server: UiServer) -> None:
    first = found(server, "messages", recording=0)
    assert [one["preview"] for one in first["rows"]] == LINES[:50]
    assert found(server, "messages", recording=0, position=first["next"])["rows"][0]["preview"] == LINES[50]
    # A position inside of a message is that message's.
    assert found(server, "messages", recording=0, position=64 * 3 + 5)["rows"][0]["preview"] == LINES[3]
    last = found(server, "messages", recording=0, last="")
    assert [one["preview"] for one in last["rows"]] == LINES[-50:]
    assert [one["preview"] for one in found(server, "messages", recording=0, before=last["from"])["rows"]] == LINES[
        20:70
    ]
    assert found(server, "messages", recording=0, before=0)["rows"] == []
    assert found(server, "messages", recording=0, time="2001-01-01T00:00")["rows"][0]["preview"] == LINES[0]
    assert found(server, "messages", recording=0, time="2100-01-01T00:00")["rows"] == []
    assert "is no time" in found(server, "messages", recording=0, time="soon")["error"]
    assert "lies outside" in found(server, "messages", recording=0, time="0001-01-01T00:00+14:00")["error"]
    beyond = found(server, "messages", recording=0, position=2**62)
    assert (beyond["rows"], beyond["from"]) == ([], str(64 * len(LINES)))


def test_a_message_as_bytes_tree_and_row(server: UiServer) -> None:
    rows = found(server, "messages", recording=1)["rows"]
    bare = shown(server, recording=1, position=rows[3]["position"])
    assert bare["tree"] is None
    assert bytes.fromhex("".join(line[1] for line in bare["hex"])) == QUOTES[3]
    row = dict(bare["rows"][0])
    assert (row["recording_id"], row["position"], row["stream_id"]) == ("1", rows[3]["position"], "7")
    by_schema = shown(server, recording=1, position=rows[3]["position"], schema=SCHEMA)
    assert by_schema["tree"][0]["name"] == "Quote"
    fields = {one["name"]: one["text"] for one in by_schema["tree"][0]["nodes"]}
    assert fields["number"] == "3"
    assert "Quote" in dict(by_schema["rows"][0])["sbe_template"]
    assert "'number': 3" in dict(by_schema["rows"][0])["Quote"]
    assert dict(shown(server, recording=7, position=0, schema=hiding.SCHEMA)["rows"][0])["value"] == "{'price': 11}"


def test_moments_that_python_has_not(server: UiServer) -> None:
    positions = [one["position"] for one in found(server, "messages", recording=6)["rows"]]
    for position, fields in zip(positions, moments.FIELDS, strict=True):
        row = dict(shown(server, recording=6, position=position, schema=moments.SCHEMA)["rows"][0])
        told = {name: one for name, one in fields.items() if name not in {"key", "legs"}}
        assert str(told)[1:-1] in row["Moment"]
        assert str(fields["legs"]) in row["Moment"]


def test_a_message_of_very_many_values_is_bounded(server: UiServer) -> None:
    """Of a group whose entries take a byte each, and of messages that are longer than what is decoded."""
    group = (
        '<sbe:messageSchema xmlns:sbe="http://fixprotocol.io/2016/sbe" package="x" id="9" version="0"><types>'
        '<composite name="messageHeader"><type name="blockLength" primitiveType="uint16"/>'
        '<type name="templateId" primitiveType="uint16"/><type name="schemaId" primitiveType="uint16"/>'
        '<type name="version" primitiveType="uint16"/></composite><composite name="groupSizeEncoding">'
        '<type name="blockLength" primitiveType="uint16"/><type name="numInGroup" primitiveType="uint16"/></composite></types>'
        '<sbe:message name="Many" id="1"><group name="entries" id="1"><field name="one" id="2" type="uint8"/></group>'
        "</sbe:message></sbe:messageSchema>"
    )
    many = shown(server, recording=3, position=0, schema=group)
    assert [one["name"] for one in many["tree"]] == ["Many", "…"]
    assert len(json.dumps(many)) < 400_000
    assert many["hex_left_out"] == 12 + 20_000 - MAX_HEX_BYTES
    long = shown(server, recording=4, position=0, schema=group)
    assert "longer than 65536 bytes" in long["tree"][0]["text"]
    assert "Many" not in dict(long["rows"][0])


def test_what_is_asked_of_a_message_is_checked(server: UiServer) -> None:
    rows = found(server, "messages", recording=1)["rows"]
    assert shown(server, recording=1, position=int(rows[1]["position"]) + 1)["error"].startswith("no message begins")
    assert "has positions 0 to" in shown(server, recording=1, position=2**62)["error"]
    for wrong in ("x", "-1", "1e3", ""):
        assert shown(server, recording=1, position=wrong)["is_usage"]
    for framing in ("wrong", f"lengthPrefix=u16,lengthAdjust={'9' * 5000}"):
        assert "framing" in shown(server, recording=1, position=0, schema=SCHEMA, framing=framing)["error"]
    assert "not well-formed" in shown(server, recording=1, position=0, schema="<messageSchema")["error"]


def test_a_schema_reads_no_file(server: UiServer, tmp_path: Path) -> None:
    """Includes and entities of a schema that is dropped in name files of the server's machine."""
    secret = tmp_path / "types.xml"
    secret.write_text("<types><type name='secret' primitiveType='int8'/></types>", "utf-8")
    head, _, rest = SCHEMA.partition("<types>")
    include = f'<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="{secret}"/>'
    told = shown(server, recording=1, position=0, schema=f"{head}{include}<types>{rest}")["error"]
    assert "include" in told.lower()
    entity = f'<!DOCTYPE x [<!ENTITY e SYSTEM "{secret.as_uri()}">]>'
    assert "error" in shown(server, recording=1, position=0, schema=f"{entity}<messageSchema>&e;</messageSchema>")


def test_who_waited_for_a_slow_look_makes_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=0.0, looks=0)

    def look() -> int:
        clock.now += 5
        clock.looks += 1
        return int(clock.looks)

    monkeypatch.setattr(watch, "time", SimpleNamespace(monotonic=lambda: clock.now))
    kept = watch._Kept(look, 1)
    assert [kept.get(), kept.get()] == [1, 1]
    clock.now += 1
    assert kept.get() == 2


def test_messages_of_a_stock_archive(tmp_path: Path) -> None:
    """Its folder has no time index: no times are made up."""
    packed.unpack(GOLDEN / "archive.tar.gz", tmp_path)
    folder = next(tmp_path.rglob("archive.catalog")).parent
    with served(Watch([], [str(folder)])) as server:
        first = found(server, "recordings", order="id")["rows"][0]
        assert first["archive"] == 0
        listed = found(server, "messages", recording=first["recording_id"])
        assert listed["error"] == ""
        assert {one["time"] for one in listed["rows"]} == {""}
        one = shown(server, recording=first["recording_id"], position=listed["rows"][0]["position"])
        assert f"{one['length']:,}" == listed["rows"][0]["length"]
        assert found(server, "recording", recording=first["recording_id"])["rates"] == []


def test_damage_ends_the_list_with_an_error(recorded: tuple[Servers, RecordedFolder], tmp_path: Path) -> None:
    """What is before is shown; the list behind says what is wrong, and never shows bytes that are not there."""
    folder = tmp_path / "archive"
    shutil.copytree(recorded[1].path, folder)
    segment = next(folder.glob("0-*.rec"))
    content = bytearray(segment.read_bytes())
    content[64 * 60 : 64 * 60 + 4] = (7).to_bytes(4, "little")  # a frame shorter than its header
    segment.write_bytes(content)
    with served(Watch([], [str(folder)])) as server:
        first = found(server, "messages", recording=0)
        assert [one["preview"] for one in first["rows"]] == LINES[:50]
        second = found(server, "messages", recording=0, position=first["next"])
        assert [one["preview"] for one in second["rows"]] == LINES[50:60]
        assert "3840" in found(server, "messages", recording=0, position=second["next"])["error"]
        segment.unlink()
        assert not found(server, "recording", recording=0)["segments"][0]["is_there"]
        assert found(server, "messages", recording=0)["error"]


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    with served(Watch([str(tmp_path)], [str(tmp_path / "none")])) as server:
        servers = found(server, "overview")["servers"]
        assert [one["state"] for one in servers] == ["unreadable", "unreadable"]
        assert "no archive.catalog" in found(server, "messages", recording=0)["error"]
        assert any(one["level"] != "ok" for one in found(server, "findings")["findings"])


# -- the command -------------------------------------------------------------------------------------------------------------


def test_the_command_says_where_the_page_is_and_ends(recorded: tuple[Servers, RecordedFolder]) -> None:
    servers, folder = recorded
    words = ["ui", "--dir", str(servers.aeron_dir), "--archive-dir", str(folder.path), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(
        [sys.executable, "-m", "aeron_spark.cli", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        told = process.stdout.readline()
        assert told.startswith(f"aeron-spark ui: shows {servers.aeron_dir}, {folder.path} at http://127.0.0.1:"), (
            process.stderr
        )
        port = int(told.rpartition(":")[2].strip().rstrip("/"))
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/")
        assert connection.getresponse().status == 200
        connection.close()
        process.terminate()
        assert process.wait(60) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_without_waitress_the_command_is_named() -> None:
    program = (
        "import sys; sys.modules['waitress'] = None; from aeron_spark.cli.__main__ import main; sys.exit(main(['ui']))"
    )
    ended = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("aeron-spark ui: this needs waitress")
    assert "pip install 'aeron-spark[ui]'" in ended.stderr
