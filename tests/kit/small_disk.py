"""A file system of a few megabytes, for what happens when a disk fills."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kit import require

BALLAST = 512 * 1024


@contextmanager
def mounted(folder: Path, capacity: str) -> Iterator[Path]:
    """A tmpfs on `folder` with a file `ballast` in it that can be deleted to make room."""
    require.beyond("a file system of the test's own")
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if mount is None or umount is None or os.geteuid() != 0:
        require.missing("a small file system: root and mount")
    folder.mkdir()
    made = subprocess.run(
        [mount, "-t", "tmpfs", "-o", f"size={capacity}", "tmpfs", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        require.missing(f"a small file system: {made.stderr.strip()}")
    try:
        (folder / "ballast").write_bytes(b"x" * BALLAST)
        yield folder
    finally:
        subprocess.run([umount, "-l", str(folder)], check=True)


def remount(folder: Path, option: str) -> None:
    """Change an option of it, as noexec."""
    subprocess.run(["mount", "-o", f"remount,{option}", str(folder)], check=True)  # noqa: S607 - mounted() has found it
