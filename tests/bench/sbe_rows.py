"""SBE messages to Arrow columns beside the reference's Java decoders into primitive arrays, one thread each.

Messages a second of the thread's CPU time, so that what else the machine does counts for neither. Both write all columns:
Java raw values, a bit for each that may be null, offsets of groups and symbols; ours the same as Arrow has them, decimals of
128 bits and indices of enums' names among them. A batch is as many messages as the Spark source puts into one.
"""

from __future__ import annotations

import json
import random
import struct
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

from aeron_spark.sbe import Decoder, load
from tests.bench.pairs import ROOT, Row, measure
from tests.kit import stock_sbe

BATCH = 16_384
SECONDS = 2.0
#: Decoding is bound by memory, whose rate on a shared machine varies by half.
PAIRS = 9
GOLDEN = ROOT / "tests" / "golden" / "sbe"
OPTIONS: dict[str, Any] = {"sets": "bits"}

SCHEMAS = {
    "bbo": ("binance/stream_1_0", "BestBidAskStreamEvent"),
    "bbo-otf": ("binance/stream_1_0", "BestBidAskStreamEvent"),
    "refresh": ("cme/refresh", "MDIncrementalRefreshBook46"),
}


def best_bids_and_asks() -> list[bytes]:
    """Best bids and asks of a few symbols."""
    rng = random.Random(1)
    lines = (GOLDEN / "binance" / "stream_realistic.jsonl").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    payloads = [bytearray.fromhex(one["hex"]) for one in found if one["message"] == "BestBidAskStreamEvent"]
    made = []
    for _ in range(BATCH):
        payload = rng.choice(payloads)
        struct.pack_into("<q", payload, 26, rng.randrange(10**7))
        made.append(bytes(payload))
    return made


def _refresh(entries: int) -> list[bytes]:
    """Updates of a book with so many levels each."""
    rng = random.Random(1)
    made = []
    for number in range(BATCH if entries < 10 else BATCH // 16):
        parts = [struct.pack("<HHHHQBHB", 11, 46, 1, 9, 1_700_000_000_000_000_000 + number, 4, 0, 0)[:-3] + b"\0\0"]
        parts.append(struct.pack("<HB", 32, entries))
        for level in range(entries):
            orders = rng.choice((1, 7, 2**31 - 1))
            parts.append(
                struct.pack(
                    "<qiiIiBBc5x", rng.randrange(10**12), rng.randrange(1000), 42, number, orders, level % 10 + 1, level % 3,
                    rng.choice((b"0", b"1")),
                )
            )  # fmt: skip
        parts.append(struct.pack("<H5xB", 24, 0))
        made.append(b"".join(parts))
    return made


def _ours(schema: str, message: str, payloads: list[bytes]) -> float:
    decoder = Decoder(load(GOLDEN / f"{schema}.xml"), message, on_error="fail", **OPTIONS)
    array = pa.array(payloads, pa.binary())
    decoder.decode(array)
    count, started = 0, time.thread_time()
    while time.thread_time() - started < SECONDS:
        decoder.decode(array)
        count += len(array)
    return count / (time.thread_time() - started)


def _file(name: str, payloads: list[bytes]) -> Path:
    stock_sbe.class_path_or_skip()
    path = stock_sbe.BUILD / f"{name}.bin"
    path.write_bytes(b"".join(struct.pack("<i", len(one)) + one for one in payloads))
    return path


def _row(name: str, kind: str, target: float, payloads: list[bytes], *rest: object) -> Row:
    schema, message = SCHEMAS[kind]
    path = _file(name, payloads)
    return measure(
        name,
        "messages/CPU s",
        lambda: _ours(schema, message, payloads),
        lambda: stock_sbe.run("peers.SbeReference", kind, path, SECONDS, *rest)["messages_per_second"],
        peer_name="sbe-tool's decoders on the fly" if kind == "bbo-otf" else "sbe-tool's generated Java decoders",
        target=target,
        ours_config={"batch": len(payloads), **OPTIONS},
        peer_config={"messages": len(payloads), "bounds_checks": True},
        pairs=PAIRS,
        warm=False,
    )


def run() -> list[Row]:
    """The rows of group `sbe`."""
    bbo = best_bids_and_asks()
    return [
        _row("sbe_bbo", "bbo", 1.0, bbo),
        _row("sbe_refresh_2", "refresh", 1.0, _refresh(2)),
        _row("sbe_refresh_39", "refresh", 1.0, _refresh(39)),
        _row("sbe_bbo_otf", "bbo-otf", 3.0, bbo, stock_sbe.ir_file("stream_1_0")),
    ]
