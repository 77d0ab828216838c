"""Files that others may have put something else in place of: a process must not read it for ever, nor write where it leads.

And what makes any file durable.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO

MAX_BYTES = 1 << 20
#: Permissions of files with messages, but for the umask: what an archive's files have.
FILE_MODE = 0o640


def read_small(path: str | os.PathLike[str]) -> bytes:
    """Content of a regular file, or of what another process writes to (`<(command)`), of at most `MAX_BYTES`.

    Raises:
        OSError: It can't be read, is a device or a directory, or holds more.
    """
    with open(path, "rb") as file:  # noqa: PTH123 - also /dev/fd/63
        kind = os.fstat(file.fileno()).st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISFIFO(kind)):
            raise OSError(errno.EINVAL, "is no regular file", os.fspath(path))
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise OSError(errno.EFBIG, f"holds more than {MAX_BYTES} bytes", os.fspath(path))
    return content


def create_file(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file to write, made or emptied; a symbolic link is followed only if it is one's own or root's (`/dev/stdout`).

    Raises:
        OSError: It can't be written, or is a link of another user's.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        flags |= os.O_EXCL
    else:
        if not stat.S_ISLNK(found.st_mode) or found.st_uid not in {0, os.geteuid()}:
            flags |= os.O_NOFOLLOW
    return open(os.open(path, flags, FILE_MODE), "wb")  # noqa: PTH123 - a descriptor


def sync_path(path: str | os.PathLike[str], *, is_data_only: bool = False) -> None:
    """Make a file, or the names in a folder, durable; `is_data_only`: but for times and the like. A link's target is synced."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        (os.fdatasync if is_data_only else os.fsync)(descriptor)
    finally:
        os.close(descriptor)
