"""Opens recordings by their address: an archive's folder, an object store's URI, or an archive's control channel.

What a kind of address needs is loaded when one is opened: a Spark session's first query waits for what its planner loads.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from aeron_spark.archive.segments import Folder
from aeron_spark.archive.sources import RecordingSource
from aeron_spark.errors import UsageError
from aeron_spark.types import RecordChecksum

if TYPE_CHECKING:
    from aeron_spark.archive.client import Archive
    from aeron_spark.archive.objects import ObjectFolder

__all__ = ["SECRETS", "open_filesystem", "open_source", "open_store", "store_scheme"]

#: Scheme of a path to pyarrow's filesystem class.
FILESYSTEMS = {
    "s3": "S3FileSystem",
    "s3a": "S3FileSystem",
    "gs": "GcsFileSystem",
    "gcs": "GcsFileSystem",
    "abfs": "AzureFileSystem",
    "abfss": "AzureFileSystem",
    "hdfs": "HadoopFileSystem",
}
SECRETS = re.compile(r"secret|password|token|key", re.IGNORECASE)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


@contextmanager
def open_source(address: str, *, aeron_dir: str | os.PathLike[str] | None = None) -> Iterator[RecordingSource]:
    """The recordings of a folder (also `file:`), of a store (`s3://bucket/folder`, ...) or of an archive (`aeron:...`).

    A store's credentials are those of the environment. An archive replays to a free port of this machine, through the
    driver in `aeron_dir`. UsageError: a scheme that cannot be read.
    """
    if address.startswith("aeron:"):
        from aeron_spark.archive.client import Archive
        from aeron_spark.archive.remote import RemoteArchive, answers_channel

        answers = answers_channel(address)
        with ExitStack() as sessions:

            def session() -> Archive:
                return sessions.enter_context(
                    Archive(aeron_dir=aeron_dir, control_channel=address, response_channel=answers)
                )

            yield RemoteArchive(session(), answers, reopened=session)
    elif store_scheme(address) is not None:
        with open_store(address, {}) as store:
            yield store
    else:
        with Folder(re.sub(r"^file:(//)?", "", address), aeron_dir=aeron_dir) as folder:
            yield folder


def store_scheme(path: str | None, name: str = "path") -> str | None:
    """Scheme of an object store's URI; None for a local path. UsageError where a user name or password stands in it."""
    match = _SCHEME.match(path or "")
    if match is None or match[1].lower() == "file":
        return None
    scheme = match[1].lower()
    if scheme not in FILESYSTEMS:
        raise UsageError(f"{name}: {scheme}: cannot be read, use a folder or one of {', '.join(FILESYSTEMS)}")
    authority = (path or "")[match.end() :].partition("/")[0]
    if ":" in authority.rpartition("@")[0] or (scheme in ("s3", "s3a", "gs", "gcs") and "@" in authority):
        raise UsageError(
            f"{name}: credentials do not belong into a {scheme}: path, where logs show them; name a file of them by "
            f"storeCredentialsFile, or use the environment"
        )
    return scheme


def open_store(uri: str, arguments: Mapping[str, Any], checksum: RecordChecksum = RecordChecksum.AUTO) -> ObjectFolder:
    """The recordings of a store; `arguments` are those of pyarrow's filesystem, which by default come from the URI."""
    from aeron_spark.archive.objects import ObjectFolder

    return ObjectFolder(*open_filesystem(uri, arguments), checksum=checksum)


def open_filesystem(uri: str, arguments: Mapping[str, Any]) -> tuple[Any, str]:
    """The pyarrow filesystem of a store's URI, and the folder in it. UsageError: the URI or the arguments are wrong."""
    from pyarrow import fs

    scheme = store_scheme(uri)
    if scheme is None:
        return fs.LocalFileSystem(), uri
    try:
        if not arguments:
            filesystem, path = fs.FileSystem.from_uri(re.sub(r"^s3a:", "s3:", uri))
        else:
            authority, _, rest = uri.partition("://")[2].partition("/")
            filesystem, path = _filesystem(scheme, authority, rest, dict(arguments))
    except (OSError, TypeError, ValueError) as error:
        raise UsageError(f"object store {uri}: {_redacted(str(error), arguments)}") from None
    return filesystem, path


def _filesystem(scheme: str, authority: str, rest: str, arguments: dict[str, Any]) -> tuple[Any, str]:
    from pyarrow import fs

    if scheme.startswith("abfs"):
        container, _, host = authority.rpartition("@")
        arguments = {"account_name": host.partition(".")[0], **arguments}
        return fs.AzureFileSystem(**arguments), f"{container}/{rest}"
    if scheme == "hdfs":
        host, _, port = authority.partition(":")
        return fs.HadoopFileSystem(host or "default", int(port or 0), **arguments), f"/{rest}"
    return getattr(fs, FILESYSTEMS[scheme])(**arguments), f"{authority}/{rest}"


def _redacted(text: str, arguments: Mapping[str, Any]) -> str:
    for name, value in arguments.items():
        if SECRETS.search(name) and isinstance(value, str) and value:
            text = text.replace(value, "*****")
    return text
