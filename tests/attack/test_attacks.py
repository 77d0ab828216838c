"""No attack ends, stalls or fills the servers, and honest streams and logins go on. `make attack`; short in `make interop`.

Method: a world at work (world.py) is measured undisturbed, then while one attack (attacks.py) is made, and a time after. Each
try has a world of its own. What an attack does it does each time; what the machine's other programs do to a try, it does not:
so an attack may have TRIES (three), and is judged by the best. ATTACK=long takes all variants, else the seed chooses one of
each attack.
"""

from __future__ import annotations

import os
import random
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attack import figures, honest
from tests.attack.attacks import ATTACKS
from tests.attack.figures import Figures
from tests.attack.world import PASSWORD, World, world
from tests.conformance.archive import folder

pytestmark = pytest.mark.interop

LONG = os.environ.get("ATTACK") == "long"
TRIES = int(os.environ.get("TRIES", "3"))
UNDISTURBED_S = 2.0
WATCHED_S = 4.0


def chosen(seed: int) -> Iterator[tuple[str, int]]:
    """All attacks; in the short form with a variant of the seed's each."""
    for name, attack in ATTACKS.items():
        numbers = range(attack.variants)
        yield from (
            (name, one) for one in (numbers if LONG else [zlib.crc32(f"{seed}:{name}".encode()) % attack.variants])
        )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    metafunc.parametrize(("name", "variant"), list(chosen(metafunc.config.option.seed)))


def a_try(folder_: Path, rng: random.Random, name: str, variant: int) -> tuple[Figures, World]:
    folder_.mkdir()
    with world(folder_, rng) as made:
        begin = made.mark()
        time.sleep(UNDISTURBED_S)
        before = made.look(begin)
        begin = made.mark()
        ATTACKS[name].act(made, variant)
        attack_s = time.monotonic() - begin[0]
        time.sleep(max(1.0, WATCHED_S - attack_s))
        made.check_alive()
        under = made.look(begin)
        assert made.friend_client is not None
        with honest.log_in(made.friend_client, f"honest:{PASSWORD}".encode()) as session:
            assert len(session.recordings()) >= 1
        return (
            Figures(
                name=name,
                variant=variant,
                before=before,
                under=under,
                sent=made.attacker.bytes,
                datagrams=made.attacker.datagrams,
                errors=[*made.cnc.errors(), *folder.mark_errors(made.archive_dir)],
            ),
            made,
        )


def test_attack(
    name: str, variant: int, tmp_path: Path, rng: random.Random, capsys: pytest.CaptureFixture[str]
) -> None:
    complaints: list[str] = []
    for number in range(TRIES):
        found, _ = a_try(tmp_path / str(number), rng, name, variant)
        complaints = list(found.complaints())
        figures.note(found, complaints)
        if LONG:
            with capsys.disabled():
                print(*figures.row(found, complaints), sep="\n")
        if not complaints:
            return
    pytest.fail("\n".join([f"{name} {variant}, in each of {TRIES} tries; in the last:", *complaints]), pytrace=False)
