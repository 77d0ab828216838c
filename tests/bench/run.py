"""Runs the benchmarks, all or groups of rows: python -m tests.bench.run [GROUP ...]: build/bench.jsonl.

Each group has a process of its own: Spark takes its jars when its virtual machine starts, and there is one for a process.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import sys
from concurrent.futures import ProcessPoolExecutor

from tests.bench import (
    archive_rows,
    capture_rows,
    kafka_rows,
    native_rows,
    real_time_rows,
    replay_rows,
    sbe_rows,
    sbe_spark_rows,
    sight_rows,
    spark_rows,
    tables_rows,
    transport_rows,
    wire_rows,
)
from tests.bench.machine import DISTURBED
from tests.bench.pairs import GROUP, RESULTS, Row, print_table
from tests.kit import processes, stock, stock_c, stock_sbe

# The stock peers of each group; built once, before anything is measured.
PEERS = {
    "native": (stock,),
    "ipc": (stock_c,),
    "udp": (stock_c,),
    "wire": (stock_c,),
    "archive": (stock,),
    "sbe": (stock_sbe,),
}
GROUPS = {
    "native": native_rows.run,
    "ipc": transport_rows.run_ipc,
    "udp": transport_rows.run_udp,
    "wire": wire_rows.run,
    "archive": archive_rows.run,
    "spark": spark_rows.run,
    "real-time": real_time_rows.run,
    "sbe": sbe_rows.run,
    "sbe-spark": sbe_spark_rows.run,
    "tables": tables_rows.run,
    "captures": capture_rows.run,
    "replay": replay_rows.run,
    "sight": sight_rows.run,
    "kafka": kafka_rows.run,
}


def _measure(group: str) -> list[Row]:
    # A driver that spins and is left behind would spoil all that is measured after it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    os.environ[GROUP] = group
    try:
        return GROUPS[group]()
    finally:
        processes.end_all()


def _end(*_: object) -> None:
    for child in multiprocessing.active_children():
        child.terminate()
    sys.exit(1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groups", nargs="*", choices=[[], *GROUPS], help="which rows to measure (all)")
    chosen = parser.parse_args().groups or list(GROUPS)
    for peer in dict.fromkeys(peer for group in chosen for peer in PEERS.get(group, ())):
        print(f"the stock peers of {peer.__name__}: minutes where they are not built yet", flush=True)
        peer.ensure_built()
    RESULTS.unlink(missing_ok=True)
    signal.signal(signal.SIGTERM, _end)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"), max_tasks_per_child=1) as pool:
        rows = [row for group in pool.map(_measure, chosen) for row in group]
    print_table(rows)
    below = [row.name for row in rows if row.is_below()]
    if below:
        print(f"below target: {', '.join(below)}")
    unjudged = [row.name for row in rows if row.is_disturbed()]
    if unjudged:
        print(
            f"not judged, as other programs took more than {DISTURBED:.0%} of the machine meanwhile; run these again when "
            f"it is quiet: {', '.join(unjudged)}"
        )
    return 1 if any(row.failure for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
