"""`aeron-spark doctor`: what is wrong here, and what to do about it."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from typing import Any

from aeron_spark import doctor, doctor_facts, doctor_memory
from aeron_spark.cli.common import add_dir, add_json, add_verb, int32, print_json

EXAMPLES = """\
  aeron-spark doctor
  aeron-spark doctor --dir /dev/shm/aeron-demo --json
  aeron-spark doctor -D aeron.term.buffer.length=64m driver.properties
  aeron-spark doctor --for-streams 100 -D aeron.term.buffer.length=1m"""

_COLOURS = {"ok": "32", "warn": "33", "error": "31"}


def add_to(verbs: Any) -> None:
    """Add the verb."""
    verb = add_verb(
        verbs,
        "doctor",
        run,
        about="look for what is wrong with this machine and a driver's directory",
        examples=EXAMPLES,
    )
    add_dir(verb)
    add_json(verb)
    verb.add_argument(
        "-D", dest="define", action="append", default=[], metavar="NAME=VALUE", help="a setting of the driver to be"
    )
    verb.add_argument(
        "--for-streams",
        type=int32,
        metavar="N",
        help="print instead how much shared memory N streams and an archive take at most, with these settings",
    )
    verb.add_argument("properties", nargs="*", metavar="FILE", help="its property files")


def run(options: argparse.Namespace) -> int:
    """Print every finding; 1 when one is an error. With --for-streams, sizes of shared memory."""
    if options.for_streams is not None:
        return _print_plans(options)
    found = doctor.check(doctor_facts.gather(options.dir, defines=options.define, files=options.properties))
    for finding in found:
        if options.json:
            print_json(dataclasses.asdict(finding))
            continue
        level = f"{finding.level:5}"
        if sys.stdout.isatty():
            level = f"\x1b[{_COLOURS[finding.level]}m{level}\x1b[0m"
        print(f"{level}  {finding.about:13}  {finding.text}")
        if finding.remedy:
            print(f"{'':22}-> {finding.remedy}")
    return 1 if any(finding.level == "error" for finding in found) else 0


def _print_plans(options: argparse.Namespace) -> int:
    for plan in doctor_memory.plans(options.for_streams, defines=options.define, files=options.properties):
        if options.json:
            print_json({**dataclasses.asdict(plan), "total_bytes": plan.total_bytes, "size": f"{plan.size}Mi"})
            continue
        print(f"{options.for_streams} streams {plan.kind}: {doctor.human(plan.total_bytes)}")
        for part in plan.parts:
            of = f"{part.count} x {doctor.human(part.each_bytes)}" if part.count > 1 else ""
            print(f"  {doctor.human(part.total_bytes):>10}  {part.what}{f' ({of})' if of else ''}")
        size = plan.size
        print(f"  -> /dev/shm of {size} MiB: sizeLimit: {size}Mi, --shm-size={size}m, mount -o size={size}m")
    return 0
