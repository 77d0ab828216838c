"""The package in a zip, as a session of Spark brings it to machines that lack it: it unpacks itself, once, in safe places only.

Method: a Python without site-packages, which has what Spark's machines have by PYTHONPATH, and the zip before that.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from aeron_spark import __version__
from aeron_spark.spark.artifact import write_zip

PROGRAM = """
import aeron_spark
from aeron_spark.config import executable
from aeron_spark.spark.source import AeronDataSource
print(aeron_spark.__version__, aeron_spark.__file__, executable("aeron-spark-driver"))
"""


@pytest.fixture(scope="module")
def zipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("zipped") / "aeron_spark.zip"
    write_zip(path)
    return path


def run(zipped: Path, temporary: Path) -> subprocess.CompletedProcess[str]:
    there = f"{zipped}:{sysconfig.get_path('platlib')}"
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": there, "TMPDIR": str(temporary)}
    return subprocess.run(
        [sys.executable, "-S", "-P", "-c", PROGRAM], env=env, capture_output=True, text=True, check=False
    )


def test_it_unpacks_itself_once(zipped: Path, tmp_path: Path) -> None:
    for _ in range(2):
        done = run(zipped, tmp_path)
        assert done.returncode == 0, done.stderr
        (folder,) = tmp_path.iterdir()
        version, package, driver = done.stdout.split()
        assert version == __version__
        assert package == f"{folder}/files/aeron_spark/__init__.py"
        assert driver == f"{folder}/files/bin/aeron-spark-driver"
        assert os.access(driver, os.X_OK)


def test_a_folder_that_others_can_write_is_refused(zipped: Path, tmp_path: Path) -> None:
    assert run(zipped, tmp_path).returncode == 0
    (folder,) = tmp_path.iterdir()
    folder.chmod(0o777)
    done = run(zipped, tmp_path)
    assert done.returncode != 0
    assert "is not a folder that this user alone can write: remove it" in done.stderr


def test_the_same_package_is_the_same_zip(zipped: Path, tmp_path: Path) -> None:
    write_zip(tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == zipped.read_bytes()
