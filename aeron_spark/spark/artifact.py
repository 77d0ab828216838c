"""Sends the package into a session of a Spark that does not have it: a managed one, where nothing can be installed.

The zip holds the package, the executables of driver and archive, and cffi's module for the Python that runs here. Spark puts
it on the path of planning processes and tasks; ``zipped_init`` unpacks it there. numpy and pyarrow must be there, as for
everything of Spark with Arrow.
"""

from __future__ import annotations

import hashlib
import importlib.util
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import aeron_spark
from aeron_spark.config import executable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["add_to", "write_zip"]

EXECUTABLES = ("aeron-spark-driver", "aeron-spark-archive")
#: A zip made again has the same bytes, so it is unpacked once on each machine.
_DATE = (1980, 1, 1, 0, 0, 0)


def add_to(spark: SparkSession) -> None:
    """Make ``format("aeron")`` known to a session, classic or of Spark Connect, whose machines lack the package.

    The Python here and there must be of one version, as for all functions in Python that a client sends.
    """
    from pyspark import cloudpickle

    from aeron_spark.spark import session_source

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "aeron_spark.zip")
        write_zip(path)
        path = path.rename(path.with_stem(f"aeron_spark-{hashlib.sha256(path.read_bytes()).hexdigest()[:16]}"))
        spark.addArtifacts(str(path), pyfile=True)
    cloudpickle.register_pickle_by_value(session_source)  # type: ignore[no-untyped-call]
    session_source.SessionSource.zip_name = path.name
    spark.dataSource.register(session_source.SessionSource)


def write_zip(path: Path) -> None:
    """The zip that ``add_to`` sends: for ``spark-submit --py-files``."""
    with zipfile.ZipFile(path, "w") as zipped:
        for name, source in sorted(_members()):
            zipped.writestr(zipfile.ZipInfo(name, _DATE), source.read_bytes(), zipfile.ZIP_DEFLATED, 6)


def _members() -> Iterator[tuple[str, Path]]:
    yield "aeron_spark/__init__.py", Path(__file__).with_name("zipped_init.py")
    for name in EXECUTABLES:
        yield f"files/bin/{name}", executable(name)
    backend = importlib.util.find_spec("_cffi_backend")
    if backend is not None and backend.origin is not None:
        yield f"files/with/{Path(backend.origin).name}", Path(backend.origin)
    # Built in place, the package lies in two folders.
    for folder in map(Path, aeron_spark.__path__):
        for suffix in ("*.py", "*.so"):
            for file in folder.rglob(suffix):
                yield f"files/aeron_spark/{file.relative_to(folder).as_posix()}", file
