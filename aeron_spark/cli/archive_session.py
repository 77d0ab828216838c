"""The control session of the verbs that ask a running archive: where it listens, and what the caller proves himself with.

Credentials are given by reference, a file or a variable of the environment, because a command line is everybody's to read.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

from aeron_spark.archive.client import DEFAULT_CHANNEL, Archive
from aeron_spark.archive.credentials import Credentials, UserPassword
from aeron_spark.archive.recordings import Recording
from aeron_spark.cli.common import add_dir, add_json, add_verb, int32, print_json, seconds
from aeron_spark.errors import UsageError
from aeron_spark.small_files import read_small
from aeron_spark.types import Signal


def add_running(
    parts: Any, name: str, run: Callable[[argparse.Namespace], int], *, about: str, examples: str
) -> argparse.ArgumentParser:
    """Add a verb of a running archive, with the options of its session."""
    part = add_verb(parts, name, run, about=about, examples=examples)
    add_dir(part)
    add_json(part)
    add_control(part)
    return part


def add_control(part: argparse.ArgumentParser) -> None:
    """Options that name where the archive takes control sessions, and with what credentials."""
    part.add_argument(
        "--control", metavar="URI", default=DEFAULT_CHANNEL, help="the archive's control channel (aeron:ipc)"
    )
    part.add_argument("--control-stream", metavar="ID", type=int32, default=10, help="its stream (default 10)")
    part.add_argument("--response", metavar="URI", default=DEFAULT_CHANNEL, help="channel of its answers (aeron:ipc)")
    part.add_argument("--response-stream", metavar="ID", type=int32, default=20, help="its stream (default 20)")
    part.add_argument(
        "--timeout", metavar="SECONDS", type=seconds, default=10.0, help="wait so long for answers (default 10)"
    )
    add_credentials(part, "", "the archive")
    part.add_argument(
        "--user",
        metavar="NAME",
        help="a user of the archive's credentials file; the file or variable then holds the password, which is not sent",
    )


def add_credentials(part: argparse.ArgumentParser, prefix: str, whose: str) -> None:
    """Options for credentials by reference, their names behind `prefix`."""
    part.add_argument(
        f"--{prefix}credentials-file", metavar="FILE", help=f"file with what {whose} lets in, such as name:password"
    )
    part.add_argument(f"--{prefix}credentials-env", metavar="NAME", help="variable of the environment with the same")


def credentials(options: argparse.Namespace, prefix: str = "") -> bytes | None:
    """What the file or the variable holds; None without either."""
    file = getattr(options, f"{prefix}credentials_file")
    name = getattr(options, f"{prefix}credentials_env")
    option = prefix.replace("_", "-")
    if file is not None and name is not None:
        raise UsageError(f"give --{option}credentials-file or --{option}credentials-env, not both")
    if file is not None:
        try:
            return read_small(file).removesuffix(b"\n").removesuffix(b"\r")
        except OSError as failure:
            raise UsageError(f"--{option}credentials-file {file}: {failure.strerror}") from None
    if name is not None:
        value = os.environb.get(os.fsencode(name))
        if value is None:
            raise UsageError(f"--{option}credentials-env {name}: there is no such variable in the environment")
        return value
    return None


def connect(options: argparse.Namespace, *, on_signal: Callable[[Signal], object] | None = None) -> Archive:
    """A control session by the options of `add_control`."""
    return Archive(
        aeron_dir=options.dir,
        control_channel=options.control,
        control_stream_id=options.control_stream,
        response_channel=options.response,
        response_stream_id=options.response_stream,
        timeout=options.timeout,
        client_info=f"aeron-spark archive {options.part}",
        credentials=_proof(options),
        on_signal=on_signal,
    )


def known(archive: Archive, recording_id: int) -> Recording:
    """The recording of this id; one that the archive does not have is an error of who named it."""
    recording = archive.recording(recording_id)
    if recording is None:
        raise UsageError(f"unknown recording id: {recording_id}")
    return recording


def _proof(options: argparse.Namespace) -> Credentials | None:
    given = credentials(options)
    if options.user is None:
        return given
    if given is None:
        raise UsageError("--user needs the password: --credentials-file or --credentials-env")
    return UserPassword(options.user, given.decode())


def print_answer(options: argparse.Namespace, fields: dict[str, object], text: str) -> None:
    """One answer, for people or as JSON."""
    if options.json:
        print_json(fields)
    else:
        print(text)
