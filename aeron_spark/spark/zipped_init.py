"""Stands as ``aeron_spark/__init__.py`` in the zip of ``artifact``: Python cannot load native code from a zip.

Unpacks the zip once on each machine, for each user, and goes on as the package that was in it. The folder's name has the zip's
hash, so another release is another folder. Its owner and mode are checked: its name can be guessed and taken first.
"""

import hashlib
import importlib.util
import os
import shutil
import stat
import sys
import tempfile
import zipfile
from pathlib import Path


def _unpacked(archive: Path) -> Path:
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir(), f"aeron-spark-{os.geteuid()}-{digest}")
    if not folder.exists():
        made = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
        with zipfile.ZipFile(archive) as opened:
            opened.extractall(made)
        for program in (made / "files" / "bin").iterdir():
            program.chmod(0o700)
        try:
            made.rename(folder)
        except OSError:  # another process was first
            shutil.rmtree(made)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise ImportError(
            f"{folder}, where aeron_spark is unpacked, is not a folder that this user alone can write: remove it"
        )
    return folder / "files"


_files = _unpacked(Path(__file__).parents[1])
# What the machine has is used first.
if importlib.util.find_spec("_cffi_backend") is None:
    sys.path.append(str(_files / "with"))
os.environ.setdefault("AERON_SPARK_BIN", str(_files / "bin"))
__path__ = [str(_files / "aeron_spark")]
__file__ = str(_files / "aeron_spark" / "__init__.py")
exec(compile(Path(__file__).read_bytes(), __file__, "exec"))  # noqa: S102 - the package's own
