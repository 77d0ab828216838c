"""Stands as ``aeron_spark/__init__.py`` in the zip of ``artifact``: Python cannot load native code from a zip.

Unpacks the zip on each machine, for each user, and goes on as the package that was in it. The folder's name has the zip's
hash, so another release is another folder. Each import looks for what is missing there, because cleaners of temporary files
take what was not read for days, and tasks race: a file is written beside its place and renamed. The folder's name can be
guessed and taken first, so other names are searched, as ``launch`` does; nothing of the package can be imported here yet.
"""

import hashlib
import importlib.util
import os
import stat
import sys
import tempfile
import zipfile
from pathlib import Path


def _is_own(path: Path) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022


def _own_folders(place: Path, name: str) -> list[Path]:
    return sorted(path for path in (place / name, *place.glob(f"{name}.*")) if _is_own(path))


def _own_folder(place: Path, name: str) -> Path:
    found = _own_folders(place, name)
    if not found:
        try:
            (place / name).mkdir(0o700)
        except FileExistsError:
            if not _is_own(place / name):  # else another task made it just now
                tempfile.mkdtemp(prefix=f"{name}.", dir=place)
        found = _own_folders(place, name)
    if not found:
        raise ImportError(
            f"no folder that this user alone can write can be made in {place} for aeron_spark: set TMPDIR"
        )
    return found[0]


def _is_there(path: Path, size: int) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size == size


def _put(path: Path, content: bytes) -> None:
    path.parent.mkdir(0o700, parents=True, exist_ok=True)
    handle, beside = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(beside).chmod(0o700 if path.parent.name == "bin" else 0o600)
        Path(beside).replace(path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


def _unpacked(archive: Path) -> Path:
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()[:16]
    folder = _own_folder(Path(tempfile.gettempdir()), f"aeron-spark-{os.geteuid()}-{digest}")
    with zipfile.ZipFile(archive) as opened:
        for member in opened.infolist():
            path = folder / member.filename
            if not _is_there(path, member.file_size):
                _put(path, opened.read(member))
    return folder / "files"


_files = _unpacked(Path(__file__).parents[1])
# What the machine has is used first.
if importlib.util.find_spec("_cffi_backend") is None:
    sys.path.append(str(_files / "with"))
os.environ.setdefault("AERON_SPARK_BIN", str(_files / "bin"))
__path__ = [str(_files / "aeron_spark")]
__file__ = str(_files / "aeron_spark" / "__init__.py")
exec(compile(Path(__file__).read_bytes(), __file__, "exec"))  # noqa: S102 - the package's own
