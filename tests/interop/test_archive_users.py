"""Goal: stock clients log in to our archive as users of a credentials file, and do what their lines allow.

Method: a stock AeronArchive client whose CredentialsSupplier gives `user:password`, or the user's name and the answer to the
challenge, made with nothing but the JDK (ScramCredentialsSupplier).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aeron_spark.archive.users import user_line
from tests.interop.archiving import IPC, Opened, assert_replays, record
from tests.kit import dirs, native, stock

ITERATIONS = 1000


@pytest.fixture(scope="module")
def aeron_dir() -> Iterator[Path]:
    """The directory of an archive with users: alice may do everything, bob replay and query."""
    with dirs.fresh("driver") as directory, dirs.fresh("archive") as folder, dirs.fresh("users") as secrets:
        path = secrets / "users"
        path.touch(0o600)
        users = [user_line("alice", "open sesame", ["all"], iterations=ITERATIONS)]
        users.append(user_line("bob", "b:ob", ["query", "replay"], iterations=ITERATIONS))
        path.write_text("\n".join(users))
        settings = {"aeron.spark.archive.credentials.file": str(path)}
        with native.driver(directory), native.archive(directory, folder, settings):
            yield directory


@pytest.mark.parametrize("is_challenged", [False, True])
def test_users_do_what_their_lines_allow(
    peer: Any, aeron_dir: Path, stream: int, opened: Opened, *, is_challenged: bool
) -> None:
    """Alice records, bob replays what she recorded and may not record."""
    alice = opened(peer.archiveClientAs(str(aeron_dir), "alice", "open sesame", is_challenged))
    run = record(alice, opened, stream, 50)
    bob = opened(peer.archiveClientAs(str(aeron_dir), "bob", "b:ob", is_challenged))
    assert_replays(bob, opened, run.recording_id, 50, stop=run.position)
    with stock.raises("ArchiveException", "unauthorised action"):
        bob.startRecording(IPC, stream + 1000)


@pytest.mark.parametrize("is_challenged", [False, True])
def test_wrong_passwords_are_rejected(peer: Any, aeron_dir: Path, *, is_challenged: bool) -> None:
    """A stock client says so at once."""
    with stock.raises("AuthenticationException|ArchiveException", "authentication rejected"):
        peer.archiveClientAs(str(aeron_dir), "alice", "open says me", is_challenged)


def test_no_credentials_are_rejected(peer: Any, aeron_dir: Path) -> None:
    """As are clients that know nothing of users."""
    with stock.raises("AuthenticationException|ArchiveException", "authentication rejected"):
        peer.archiveClient(str(aeron_dir))
