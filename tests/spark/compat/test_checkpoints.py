"""A query that one pyspark began continues with another one, and then with the first again.

The other one is the lowest that must work, for that the newest; both write Spark's logs of the checkpoint and our offsets.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from tests.kit import compatibility, dirs, require
from tests.kit.payload import payload
from tests.kit.processes import Process
from tests.spark import recorded
from tests.spark.compat.carried import Taken, go_on

SIZES = [8, 100, 1377]
STREAM = 1001
LOWEST, *_, NEWEST = compatibility.makefile("PYSPARKS")
OTHER = NEWEST if pyspark.__version__ == LOWEST else LOWEST


def by_the_other(folder: Path, checkpoint: Path) -> Taken:
    place = compatibility.ROOT / "build" / f"pyspark-{OTHER}"
    if not place.exists():
        require.missing(f"no pyspark {OTHER} in {place}: make build/{place.name}/.installed")
    path = f"{place}:{compatibility.ROOT}"
    command = [sys.executable, "-m", "tests.spark.compat.carried", str(folder), str(checkpoint)]
    program = Process("the other pyspark", command, env={"PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable})
    assert program.wait_end(timeout=280) == 0, program.report()
    version, taken = json.loads(program.stdout().splitlines()[-1])
    assert version == OTHER
    return dict(taken)


@pytest.mark.compat(f"Checkpoints carried to {NEWEST} and back (of {NEWEST}: to {LOWEST} and back)")
def test_a_checkpoint_is_carried(spark: SparkSession, tmp_path: Path) -> None:
    checkpoint, seen = tmp_path / "checkpoint", [0]
    found: Taken = {}
    with dirs.fresh("aeron") as aeron_dir, dirs.fresh("archive") as archive_dir:
        with recorded.archive(aeron_dir, archive_dir) as archive:
            publication = archive.record(STREAM)
            for count, is_here in ((100, True), (50, False), (30, True)):
                recorded.publish(publication, STREAM, count, SIZES, first=sum(seen))
                archive.wait_recorded(STREAM, publication.position)
                seen.append(count)
                taken = (
                    go_on(spark, str(archive_dir), str(checkpoint))
                    if is_here
                    else by_the_other(archive_dir, checkpoint)
                )
                assert not taken.keys() & found.keys()
                found |= taken
                rows = [row for _, rows in sorted(found.items(), key=lambda item: int(item[0])) for row in rows]
                expected = [payload(STREAM, index, SIZES[index % len(SIZES)]).hex() for index in range(sum(seen))]
                assert rows == expected, "none lost, none twice"
            publication.close()
