"""Publish from one thread and receive Arrow batches in another, with back-pressure in between.

python examples/02_subscribe_in_batches.py
"""

from __future__ import annotations

import tempfile
import threading

import numpy as np

from aeron_spark import Client, MediaDriver, Publication

CHANNEL = "aeron:ipc?term-length=1m"
STREAM_ID = 7
MESSAGES = 200_000


def publish(publication: Publication) -> None:
    """Structured rows: each is one message of 16 bytes."""
    rows = np.zeros(10_000, np.dtype([("id", "<i8"), ("price", "<f8")]))
    for first in range(0, MESSAGES, len(rows)):
        rows["id"] = np.arange(first, first + len(rows))
        rows["price"] = 100 + rows["id"] % 7
        publication.offer_batch(rows)


def main() -> None:
    """One driver, one client, one publisher, one subscriber."""
    with (
        tempfile.TemporaryDirectory() as folder,
        MediaDriver(f"{folder}/aeron") as driver,
        Client(driver.aeron_dir) as client,
        client.add_subscription(CHANNEL, STREAM_ID) as subscription,
        client.add_exclusive_publication(CHANNEL, STREAM_ID) as publication,
    ):
        publication.wait_connected(10)
        publisher = threading.Thread(target=publish, args=(publication,))
        publisher.start()
        received, total = 0, 0.0
        while received < MESSAGES:
            batch = subscription.poll_batch(1.0, columns=["value"])
            values = batch.column("value")
            if len(values):
                _, _, data = values.buffers()
                rows = np.frombuffer(data, np.dtype([("id", "<i8"), ("price", "<f8")]), count=len(values))
                total += float(rows["price"].sum())
                received += len(values)
        publisher.join()
        print(f"{received} messages received, mean price {total / received:.3f}")


if __name__ == "__main__":
    main()
