"""Access modes of a read: local segment files, replays over the network, or an object store.

The rows are the same. With ``auto`` each process chooses for itself, because an executor may not see a folder that the planning
machine sees; positions mean the same in every access mode, so a query may mix them.
"""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from aeron_spark.archive.addresses import SECRETS, open_store, store_scheme
from aeron_spark.archive.segments import Folder
from aeron_spark.archive.sources import RecordingSource
from aeron_spark.channel import ChannelUri
from aeron_spark.errors import AeronError, UsageError
from aeron_spark.small_files import read_small
from aeron_spark.types import RecordChecksum

if TYPE_CHECKING:
    from aeron_spark.archive.client import Archive
    from aeron_spark.archive.remote import RemoteArchive

__all__ = ["SEGMENTS", "AccessOptions", "choose_mode", "open_recordings"]

AUTO, SEGMENTS, REPLAY, OBJECT_STORE = "auto", "segments", "replay", "object store"
ACCESS_MODES = (AUTO, SEGMENTS, REPLAY, OBJECT_STORE)
_CATALOG = "archive.catalog"

#: An idle session of a Python worker ends with the worker; see the sink's clients.
_archives: dict[tuple[object, ...], Archive] = {}


class Given(Protocol):
    """Options as given, by their documented names."""

    def text(self, name: str) -> str | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessOptions:
    """Access mode and addresses. Holds the names of credentials files, never their contents.

    ``path`` is a folder, an object store's URI, or None where only ``control_channel`` is given.
    """

    NAMES = (
        "access",
        "controlChannel",
        "controlStreamId",
        "replayChannel",
        "archiveCredentialsFile",
        "storeOptions",
        "storeCredentialsFile",
    )

    mode: str
    path: str | None
    aeron_dir: str | None
    control_channel: str | None
    control_stream_id: int | None
    replay_channel: str | None
    archive_credentials_file: str | None
    store_options: str | None
    store_credentials_file: str | None
    application: str

    @classmethod
    def parse(cls, given: Given, *, path: str | None, aeron_dir: str | None) -> AccessOptions:
        """Checks everything that needs no file and no network; raises UsageError."""
        mode = (given.text("access") or AUTO).strip().lower().replace("-", " ").replace("_", " ")
        if mode not in ACCESS_MODES:
            raise UsageError(f"option access={mode!r} is unknown, choose one of {', '.join(ACCESS_MODES)}")
        control = given.text("controlChannel")
        scheme = store_scheme(path, "option path")
        if path is None and control is None:
            raise UsageError("option path is missing: give the archive's folder, as load(path) or option('path', ...)")
        if path is None and mode in (SEGMENTS, OBJECT_STORE):
            raise UsageError(f"option path is missing: access={mode} reads files, give their folder as load(path)")
        if mode == REPLAY and control is None:
            raise UsageError(
                "option controlChannel is missing: access=replay asks an archive, name its control channel, like "
                "aeron:udp?endpoint=archive-host:8010"
            )
        if scheme is not None and mode in (SEGMENTS, REPLAY):
            raise UsageError(f"access={mode} cannot read {scheme}:, use access=object store (or auto)")
        for name in ("replayChannel", "controlStreamId", "archiveCredentialsFile"):
            if given.text(name) is not None and control is None:
                raise UsageError(f"option {name} is for replays, give controlChannel as well")
        _check_of_store(given, is_store=scheme is not None or mode == OBJECT_STORE)
        stream = given.text("controlStreamId")
        if stream is not None and not _is_int32(stream):
            raise UsageError(f"option controlStreamId={stream!r} is no whole number from {-1 << 31} to {(1 << 31) - 1}")
        from aeron_spark.spark.launch import application_identity

        return cls(
            mode=mode,
            path=path,
            aeron_dir=aeron_dir,
            control_channel=None if control is None else str(ChannelUri.parse(control)),
            control_stream_id=None if stream is None else int(stream),
            replay_channel=_channel(given.text("replayChannel")),
            archive_credentials_file=given.text("archiveCredentialsFile"),
            store_options=_store_options(given.text("storeOptions")),
            store_credentials_file=given.text("storeCredentialsFile"),
            application=application_identity(),
        )


def _is_int32(text: str) -> bool:
    return re.fullmatch(r"\s*-?\d{1,10}\s*", text) is not None and -1 << 31 <= int(text) < 1 << 31


def _check_of_store(given: Given, *, is_store: bool) -> None:
    for name in ("storeOptions", "storeCredentialsFile"):
        if given.text(name) is not None and not is_store:
            raise UsageError(f"option {name} is for object stores: give one's path, like s3://bucket/folder")


def open_recordings(options: AccessOptions, checksum: RecordChecksum) -> RecordingSource:
    """The recordings by the chosen access mode; the caller closes the result."""
    mode, why = choose_mode(options)
    _log(f"access={mode}: {why}")
    if mode == OBJECT_STORE:
        return _open_objects(options, checksum)
    if mode == REPLAY:
        return _open_replay(options)
    assert options.path is not None  # noqa: S101 - parse() has seen to that
    if options.mode == SEGMENTS and not Path(options.path).is_dir():
        raise UsageError(
            f"access=segments: the archive's folder {options.path} is not visible on host {os.uname().nodename}; every "
            f"executor has to see it under this path, else read by access=replay with controlChannel"
        )
    return Folder(options.path, aeron_dir=options.aeron_dir, checksum=checksum)


def choose_mode(options: AccessOptions) -> tuple[str, str]:
    """The access mode that this host would use, and why."""
    if options.mode != AUTO:
        return options.mode, "asked for"
    scheme = store_scheme(options.path)
    if scheme is not None:
        return OBJECT_STORE, f"the path is of {scheme}:"
    if options.path is None:
        return REPLAY, "controlChannel is given and no path"
    is_here = Path(options.path, _CATALOG).exists()
    if is_here or options.control_channel is None:
        return SEGMENTS, f"{options.path} is {'here' if is_here else 'all that is given'}"
    return REPLAY, f"{options.path} is not on host {os.uname().nodename}, and controlChannel is given"


def _log(text: str) -> None:
    """Logs one line to Spark's log, where a Python worker's standard error goes; again only when it changes."""
    if text != _logged.get("access"):
        _logged["access"] = text
        print(f"aeron_spark: {text}", file=sys.stderr, flush=True)  # noqa: T201 - see above


_logged: dict[str, str] = {}


# -- replay --------------------------------------------------------------------------------------------------------


def _open_replay(options: AccessOptions) -> RemoteArchive:
    from aeron_spark.archive.remote import RemoteArchive, answers_channel

    assert options.control_channel is not None  # noqa: S101 - parse() has seen to that
    response_channel = answers_channel(options.control_channel)

    def session() -> Archive:
        return _session(options, response_channel)

    return RemoteArchive(session(), options.replay_channel or response_channel, reopened=session)


def _session(options: AccessOptions, response_channel: str) -> Archive:
    """This process's session with the archive; another one if the archive died or has ended it."""
    key = os.getpid(), options, response_channel
    archive = _archives.get(key)
    if archive is not None:
        try:
            archive.recording(0)
        except AeronError:
            _archives.pop(key).close()
    if key not in _archives:
        _archives[key] = _connect(options, response_channel)
    return _archives[key]


def _connect(options: AccessOptions, response_channel: str) -> Archive:
    from aeron_spark.archive.client import Archive
    from aeron_spark.spark.launch import ensure_driver

    aeron_dir = ensure_driver(options.aeron_dir, application=options.application, may_launch=True)
    credentials = options.archive_credentials_file
    return Archive(
        aeron_dir=aeron_dir,
        control_channel=options.control_channel,
        control_stream_id=options.control_stream_id,
        response_channel=response_channel,
        credentials=None if credentials is None else Path(credentials),
        client_info="name=aeron-spark",
    )


# -- object store --------------------------------------------------------------------------------------------------


def _open_objects(options: AccessOptions, checksum: RecordChecksum) -> RecordingSource:
    assert options.path is not None  # noqa: S101 - parse() has seen to that
    arguments: dict[str, Any] = json.loads(options.store_options or "{}")
    if options.store_credentials_file is not None:
        arguments |= _credentials(options.store_credentials_file)
    return open_store(options.path, arguments, checksum)


def _credentials(file: str) -> dict[str, Any]:
    try:
        parsed = json.loads(read_small(file))
    except OSError as error:
        raise UsageError(
            f"option storeCredentialsFile={file!r}: {error.strerror} on host {os.uname().nodename}"
        ) from None
    except (ValueError, RecursionError):
        raise UsageError(f"option storeCredentialsFile={file!r} is no JSON") from None
    if not isinstance(parsed, dict):
        raise UsageError(f'option storeCredentialsFile={file!r} must hold a JSON object like {{"access_key": ...}}')
    return parsed


def _store_options(text: str | None) -> str | None:
    if text is None:
        return None
    example = '{"region": "eu-central-1"}'
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        raise UsageError(f"option storeOptions is no JSON, write it like {example}") from None
    if not isinstance(parsed, dict):
        raise UsageError(f"option storeOptions must be a JSON object like {example}")
    for name in parsed:
        if SECRETS.search(name):
            raise UsageError(
                f"option storeOptions: {name} is a secret, which options would show in logs and plans; put it into a JSON file "
                f"and name that by storeCredentialsFile"
            )
    return json.dumps(parsed, sort_keys=True)


def _channel(text: str | None) -> str | None:
    return None if text is None else str(ChannelUri.parse(text))
