"""Users of a credentials file: the line that the console prints is taken by the archive, and lets in who knows the password.

How sessions are refused is shown by tests/conformance/archive/test_sessions.py and tests/c/archive/test_server_auth.c.
"""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from aeron_spark import MediaDriver
from aeron_spark.archive.server import ArchiveServer
from aeron_spark.archive.users import answer, user_line
from aeron_spark.cli.__main__ import main
from aeron_spark.errors import UsageError

LOCAL = {"aeron.archive.control.channel.enabled": "false"}


def test_the_line_that_the_console_prints_is_taken(
    driver: MediaDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An archive starts with it, and refuses the same file once others may read it."""
    monkeypatch.setattr("sys.stdin", io.StringIO("open sesame\n"))
    assert main(["archive", "user", "alice", "--allow", "query,StartRecordingRequest2", "--iterations", "1000"]) == 0
    line = capsys.readouterr().out
    assert line.startswith("alice scram-sha-256$1000$")
    assert line.endswith(" query,StartRecordingRequest2\n")
    assert "sesame" not in line
    path = tmp_path / "users"
    path.touch(0o600)
    path.write_text(f"# users\n{line}")
    settings = {**LOCAL, "aeron.spark.archive.credentials.file": str(path)}
    with ArchiveServer(tmp_path / "archive", driver.aeron_dir, settings=settings):
        pass
    path.chmod(0o644)
    with pytest.raises(UsageError, match=f"open to others .mode 0644.: chmod 600 {path}"):
        ArchiveServer(tmp_path / "archive", driver.aeron_dir, settings=settings)


def test_no_two_lines_of_a_password_are_alike() -> None:
    lines = {user_line("bob", "secret", ["all"], iterations=1000) for _ in range(3)}
    assert len(lines) == 3


@pytest.mark.parametrize(
    ("name", "password", "actions", "text"),
    [
        ("al ice", "x", ["all"], "is no user's name"),
        ("alice", "", ["all"], "an empty password"),
        ("alice", "x", [], "not none"),
        ("alice", "x", ["fly"], r"not \['fly'\]"),
    ],
)
def test_users_that_can_not_be(name: str, password: str, actions: list[str], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        user_line(name, password, actions, iterations=1000)


def test_challenges() -> None:
    """The same challenge and password give the same answer, of 64 digits; other texts are refused."""
    challenge = b"scram-sha-256 1000 " + b"ab" * 16 + b" " + b"01" * 16
    first = answer(challenge, "secret")
    assert first == answer(challenge, "secret")
    assert len(first) == 64
    assert first != answer(challenge, "Secret")
    for wrong in (b"", b"scram-sha-256", challenge[:-1], challenge.replace(b"1000", b"90000000"), b"x" + challenge):
        with pytest.raises(UsageError, match="none of a credentials file"):
            answer(wrong, "secret")
