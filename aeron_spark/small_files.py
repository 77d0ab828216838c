"""Files that hold a secret or a setting: whoever put something else in their place must not make a process read for ever."""

from __future__ import annotations

import errno
import os
import stat

MAX_BYTES = 1 << 20


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
