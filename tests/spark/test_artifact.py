"""The package in a zip, as a session of Spark brings it to machines that lack it: it unpacks itself, once, in safe places only.

What cleaners of temporary files took comes back, and names that others took first do no harm.

Method: a Python without site-packages, which has what Spark's machines have by PYTHONPATH, and the zip before that.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import sysconfig
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from aeron_spark import __version__
from aeron_spark.spark.artifact import write_zip

STRANGER = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
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


@pytest.mark.parametrize("what", ["a module", "a short module", "an executable", "all files"])
def test_what_a_cleaner_took_is_unpacked_again(zipped: Path, tmp_path: Path, what: str) -> None:
    assert run(zipped, tmp_path).returncode == 0
    (folder,) = tmp_path.iterdir()
    module = folder / "files" / "aeron_spark" / "spark" / "source.py"
    if what == "all files":
        shutil.rmtree(folder / "files")
    elif what == "an executable":
        (folder / "files" / "bin" / "aeron-spark-driver").unlink()
    elif what == "a module":
        module.unlink()
    else:
        module.write_bytes(b"")
    done = run(zipped, tmp_path)
    assert done.returncode == 0, done.stderr
    driver = done.stdout.split()[2]
    assert driver == f"{folder}/files/bin/aeron-spark-driver"
    assert os.access(driver, os.X_OK)
    assert list(tmp_path.iterdir()) == [folder]


def test_tasks_that_race_find_the_whole_package(zipped: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor(6) as pool:
        tasks = list(pool.map(lambda _: run(zipped, tmp_path), range(6)))
    assert [task.stderr for task in tasks if task.returncode != 0] == []
    assert len(list(tmp_path.iterdir())) == 1
    with zipfile.ZipFile(zipped) as opened:
        members = sorted(opened.namelist())
    (folder,) = tmp_path.iterdir()
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    assert sorted(str(path.relative_to(folder)) for path in files) == members, "nothing is left beside the files"


@pytest.mark.parametrize("what", ["link", "file", "open", pytest.param("foreign", marks=needs_root)])
def test_a_name_that_was_taken_first(zipped: Path, tmp_path: Path, what: str) -> None:
    assert run(zipped, tmp_path).returncode == 0
    (taken,) = tmp_path.iterdir()
    if what == "open":
        taken.chmod(0o777)
    elif what == "foreign":
        os.chown(taken, STRANGER, STRANGER)
    else:
        whole = taken.rename(tmp_path / "elsewhere")
        if what == "link":
            taken.symlink_to(whole)
        else:
            taken.touch()
    packages = set()
    for _ in range(2):
        done = run(zipped, tmp_path)
        assert done.returncode == 0, done.stderr
        packages.add(done.stdout.split()[1])
    (package,) = packages
    folder = Path(package).parents[2]
    assert folder.parent == tmp_path
    assert folder.name.startswith(f"{taken.name}.")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_the_same_package_is_the_same_zip(zipped: Path, tmp_path: Path) -> None:
    write_zip(tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == zipped.read_bytes()
