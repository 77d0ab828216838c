"""What is needed to start is loaded, no more; what is missing is named with the command that installs it.

Method: modules are counted, in processes of their own, as times depend on what else a machine does.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import aeron_spark
import aeron_spark.archive
import aeron_spark.sbe
from aeron_spark.cli import archive
from aeron_spark.cli.__main__ import parser
from aeron_spark.demo import __main__ as demo

#: Modules that `--version` loads beyond those of a bare Python: 41 with Python 3.11, most of them argparse's.
MOST_MODULES = 60


def run(program: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_version_loads_little() -> None:
    *_, loaded = run(
        "import contextlib, sys\n"
        "bare = set(sys.modules)\n"
        "from aeron_spark.cli.__main__ import main\n"
        "with contextlib.suppress(SystemExit):\n"
        "    main(['--version'])\n"
        "print(*sorted(set(sys.modules) - bare))\n"
    ).splitlines()
    names = loaded.split()
    assert not {"numpy", "pyarrow", "pyspark", "importlib.metadata"} & set(names)
    assert len(names) <= MOST_MODULES, names


def test_looking_at_a_driver_needs_no_arrow() -> None:
    for verb in ("stat", "errors", "loss", "streams", "backlog"):
        program = f"import sys, aeron_spark.cli.{verb}; print('numpy' in sys.modules, 'pyarrow' in sys.modules)"
        assert run(program) == "False False\n", verb


def test_looking_at_recordings_loads_no_tables() -> None:
    """Which need pyarrow's datasets, and those pandas where it is: a second."""
    program = (
        "import sys\n"
        "from aeron_spark.cli.__main__ import parser\n"
        "for verb in sys.argv[1:]:\n"
        "    parser(['archive', verb])\n"
        "print('aeron_spark.tables' in sys.modules, 'pyarrow.dataset' in sys.modules)\n"
    )
    assert run(program, *archive.OWN, *archive.MODULES["archive_tools"], "record", "backup", "user") == "False False\n"
    assert run(program, "replay") == "True True\n"


def test_a_verb_of_an_archive_is_found_in_its_module() -> None:
    for used in [*archive.OWN, *(name for names in archive.MODULES.values() for name in names)]:
        with pytest.raises(SystemExit) as ended:
            parser(["archive", used]).parse_args(["archive", used, "--help"])
        assert ended.value.code == 0, used


def test_a_read_of_a_folder_is_planned_with_little() -> None:
    """A Spark session's first query waits for it, in two new processes."""
    loaded = run(
        "import sys\n"
        "import pyspark.sql.worker.plan_data_source_read\n"
        "from aeron_spark.spark.source import AeronDataSource\n"
        "source = AeronDataSource({'path': '/tmp'})\n"
        "source.reader(source.schema())\n"
        "print(*sys.modules)"
    ).split()
    ours = "archive.client", "archive.objects", "archive.remote", "archive.retain", "client", "sbe.walk", "spark.ledger"
    assert not {"pyarrow.compute", "pyarrow.fs", *(f"aeron_spark.{name}" for name in ours)} & set(loaded)


def test_the_package_has_its_names_when_they_are_used() -> None:
    program = (
        "import sys, aeron_spark\n"
        "assert 'pyarrow' not in sys.modules\n"
        "from aeron_spark import *\n"
        "print(Client is aeron_spark.client.Client, 'Archive' in dir(aeron_spark))\n"
    )
    assert run(program) == "True True\n"
    with pytest.raises(AttributeError, match="module 'aeron_spark' has no attribute 'nonsense'"):
        _ = aeron_spark.nonsense  # type: ignore[attr-defined]
    for package in (aeron_spark.archive, aeron_spark.sbe):
        assert {*package.__all__} <= {*dir(package)}
        assert all(hasattr(package, name) for name in package.__all__)
        assert not hasattr(package, "nonsense")


@pytest.mark.parametrize("module", ["aeron_spark.spark.source", "aeron_spark.spark.listener"])
def test_without_pyspark_the_command_is_named(module: str) -> None:
    program = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(name, path=None, target=None):\n"
        "        if name == 'pyspark':\n"
        "            raise ModuleNotFoundError(name=name)\n"
        "sys.meta_path.insert(0, Absent)\n"
        f"try:\n    import {module}\n"
        "except ModuleNotFoundError as error:\n    print(error.name, error)\n"
    )
    assert run(program) == "pyspark this needs pyspark, which is not installed here: pip install 'aeron-spark[spark]'\n"


def test_a_pyspark_without_a_part_is_not_called_missing(tmp_path: Path) -> None:
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").touch()
    program = (
        f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\n"
        "try:\n    import aeron_spark.spark.source\n"
        "except ModuleNotFoundError as error:\n    print(error.name)\n"
    )
    assert run(program).startswith("pyspark.")


def test_the_demonstration_names_it_before_it_begins(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["demo"])
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert demo.main() == 1
    assert "pip install 'aeron-spark[spark]'" in capsys.readouterr().err
