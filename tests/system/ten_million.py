"""Ten million messages that check themselves from one driver to another, under loss, in each direction.

    python -m tests.system.ten_million [--count 10000000] [--loss 0.01] [--seed 1] [--direction stock_c-to-ours]

A stock Java client on a stock driver and one on ours; the receiving driver loses `--loss` of the datagrams, by its own
loss generator. Lengths are 32 B to 64 KiB (peers.Verified says which of how many); the reader checks sequence, length
and CRC-32 of each message and fails at the first that differs. Prints progress, and a JSON line for each direction.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.kit import dirs, native, processes, stock, stock_c
from tests.kit.cnc import Cnc
from tests.kit.ports import free_port
from tests.kit.processes import Process
from tests.kit.wait import wait_until

COMMON: Mapping[str, str] = {
    "aeron.threading.mode": "SHARED",
    "aeron.shared.idle.strategy": "backoff",
    "aeron.term.buffer.length": "16m",
}
DIRECTIONS = ("stock-to-ours", "ours-to-stock")
# With the stock driver in C instead, when asked for.
MORE_DIRECTIONS = ("stock_c-to-ours", "ours-to-stock_c", "ours-to-ours")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The messages of a direction, checked at the receiver, and how many NAKs the receiving driver sent."""

    direction: str
    messages: int
    bytes: int
    seconds: float
    naks: int
    retransmits: int
    release: str


def _loss(kind: str, rate: float, seed: int) -> Mapping[str, str]:
    """The settings by which a driver loses a part of all datagrams that come in."""
    if kind != "stock":
        return {
            "aeron.udp.channel.incoming.interceptors": "loss",
            "aeron.udp.channel.transport.bindings.loss.args": f"rate={rate}|seed={seed}|recv-msg-mask=0xf",
        }
    return {
        "aeron.ReceiveChannelEndpoint.supplier": "io.aeron.driver.ext.DebugReceiveChannelEndpointSupplier",
        "aeron.debug.receive.data.loss.rate": str(rate),
        "aeron.debug.receive.data.loss.seed": str(seed),
    }


def _driver(kind: str, directory: Path, settings: Mapping[str, str]) -> Process:
    if kind == "ours":
        return native.driver(directory, {**COMMON, **settings})
    if kind == "stock_c":
        return stock_c.driver(directory, {**COMMON, **settings})
    return stock.driver(directory, settings={**COMMON, **settings}, options=())


def _peer(what: str, directory: Path, channel: str, count: int) -> Process:
    return Process(what, stock.peers([what, "--dir", directory, "--channel", channel, "--count", count]))


def run(
    direction: str,
    count: int,
    *,
    loss: float = 0.01,
    seed: int = 1,
    timeout: float = 600,
    tell: Callable[[str], object] = str,
) -> Outcome:
    """Move `count` messages in one direction and return the figures; anything but all of them, in order, raises."""
    sending, receiving = direction.split("-to-")
    channel = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    with (
        dirs.fresh("from") as from_dir,
        dirs.fresh("to") as to_dir,
        _driver(sending, from_dir, {}),
        _driver(receiving, to_dir, _loss(receiving, loss, seed)),
        _peer("verified-sub", to_dir, channel, count) as reader,
    ):
        reader.wait_ready(lambda: "READY" in reader.stdout())
        with _peer("verified-pub", from_dir, channel, count) as writer:
            told = 1

            def ended() -> bool:
                nonlocal told
                lines = reader.stdout().split("\n")[:-1]  # the last one may still be written
                for line in lines[told:]:
                    tell(f"{direction}: {line}")
                told = len(lines)
                return reader.returncode is not None or writer.returncode is not None

            wait_until(ended, timeout, f"{count} messages {direction}", state=reader.stdout)
            naks, retransmits = Cnc(to_dir).value_of("NAKs sent"), Cnc(from_dir).value_of("Retransmits sent")
            if reader.wait_end(timeout=30) != 0 or writer.wait_end(timeout=60) != 0:
                raise AssertionError(f"{direction} failed\n{reader.report()}\n{writer.report()}")
        seen = json.loads(reader.stdout().splitlines()[-1])
    return Outcome(
        direction=direction,
        messages=seen["messages"],
        bytes=seen["bytes"],
        seconds=seen["seconds"],
        naks=naks or 0,
        retransmits=retransmits or 0,
        release=stock_c.version() if "stock_c" in direction else stock.version(),
    )


def main() -> int:
    """Both directions, one after the other."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000_000)
    parser.add_argument("--loss", type=float, default=0.01, help="part of the datagrams that the receiver loses")
    parser.add_argument("--seed", type=int, default=1, help="of the loss")
    parser.add_argument(
        "--direction", choices=DIRECTIONS + MORE_DIRECTIONS, action="append", help="the first two unless named"
    )
    chosen = parser.parse_args()
    begin = time.monotonic()
    try:
        for direction in chosen.direction or DIRECTIONS:
            print(json.dumps(asdict(run(direction, chosen.count, loss=chosen.loss, seed=chosen.seed, tell=print))))
    finally:
        processes.end_all()
    print(f"all in {time.monotonic() - begin:.0f} s, each message checked at the far end")
    return 0


if __name__ == "__main__":
    sys.exit(main())
