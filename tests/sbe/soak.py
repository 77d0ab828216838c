"""Mutations of messages, lengths, counts, versions and block lengths: `python -m tests.sbe.soak [--mutations N] [--seed S]`.

Every mutated message goes through the columns, and one in a hundred through the plain walk, which must agree on what is
refused, why, and on every value: among other mutations, and behind messages that are right, where the walk takes a shorter way.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator

import pyarrow as pa

from aeron_spark.sbe import Decoder, load
from tests.sbe.test_columns import assert_same, by_message
from tests.sbe.vectors import READ_BY, messages, schema_of

BATCH = 2000
SAMPLE = 100
NUMBERS = (0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF)


def mutated(payload: bytes, rng: random.Random) -> bytes:
    """Bytes changed, most of all in the header; cut, or longer."""
    made = bytearray(payload)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(min(len(made), 8)) if rng.random() < 0.3 else rng.randrange(len(made))
        made[at] = rng.choice(NUMBERS) if rng.random() < 0.7 else rng.randrange(256)
    if rng.random() < 0.2:
        del made[rng.randrange(len(made)) :]
    elif rng.random() < 0.1:
        made += rng.randbytes(rng.randint(1, 40))
    return bytes(made)


def soak(mutations: int, seed: int) -> Iterator[int]:
    """Runs batches of mutations over all golden messages; yields how many were done. AssertionError: a difference."""
    rng = random.Random(seed)
    sources = [
        (load(schema_of(name)), message, payloads)
        for name in READ_BY
        for message, payloads in by_message(messages(name)).items()
    ]
    decoders = [
        (Decoder(read, message), Decoder(read, message, decimals="double", spark=True)) for read, message, _ in sources
    ]
    done = 0
    while done < mutations:
        index = rng.randrange(len(sources))
        read, message, payloads = sources[index]
        batch = [mutated(rng.choice(payloads), rng) for _ in range(min(BATCH, mutations - done))]
        array = pa.array(batch, pa.binary())
        for decoder in decoders[index]:
            found = decoder.decode(array)
            found.validate(full=True)
            assert found.num_rows == len(batch), f"seed {seed}"
        assert_same(read, batch[::SAMPLE], message, decoders[index][0])
        for odd in batch[:: 5 * SAMPLE]:
            good = rng.choice(payloads)
            assert_same(read, [good, good, odd, good], message, decoders[index][0])
        done += len(batch)
        yield done


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutations", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    chosen = parser.parse_args()
    print(f"seed {chosen.seed}", flush=True)
    started, told = time.monotonic(), 0
    for done in soak(chosen.mutations, chosen.seed):
        if done - told >= 500_000:
            told = done
            print(f"{done:,} mutations, {time.monotonic() - started:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
