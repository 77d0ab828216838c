"""The messages of tests/golden/sbe, with the schema that each file is read by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parents[1] / "golden" / "sbe"

READ_BY = {
    "car/car_v0": "car/example-schema",
    "car/car_v1": "car/example-extension-schema",
    "car/car_bigendian": "car/example-bigendian-test-schema",
    "car/car_v0_read_by_v1": "car/example-extension-schema",
    "car/car_v1_read_by_v0": "car/example-schema",
    "features/features_le": "features/features_le",
    "features/features_be": "features/features_be",
    "features/features_v0_read_by_v3": "features/features_le",
    "features/features_v3_read_by_v0": "features/features_v0",
    "binance/stream_realistic": "binance/stream_1_0",
}


def schema_of(name: str) -> Path:
    """The schema file of a file of messages."""
    return GOLDEN / f"{READ_BY[name]}.xml"


def messages(name: str) -> list[dict[str, Any]]:
    """The lines of a file."""
    return [json.loads(line) for line in (GOLDEN / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
