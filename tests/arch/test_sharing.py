"""Sessions of tests that run side by side share nothing."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from aeron_spark.testing import ports
from tests.kit import dirs
from tests.kit.ports import own

ROOT = Path(__file__).parents[2]
# Another session whose search for ports begins where ours does; it lives until its input ends.
OTHER = """
import itertools, os, sys
os.getpid = lambda: 1
from aeron_spark.testing import ports
print(*itertools.islice(ports._candidates(), 250), flush=True)
sys.stdin.read()
"""


def test_no_port_is_given_to_two_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getpid", lambda: 1)
    with subprocess.Popen(
        [sys.executable, "-c", OTHER], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        theirs = {int(port) for port in other.stdout.readline().split()}
        monkeypatch.setattr(ports, "_claims", [])
        ours = set(itertools.islice(ports._candidates(), 250))
        for claim in ports._claims:
            claim.close()
    assert len(theirs) == len(ours) == 250
    assert not theirs & ours


def test_threads_get_ports_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_ports", (port + sum(range(20)) * 0 for port in range(40_000)))
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            taken = [one for some in pool.map(lambda _: [ports._take() for _ in range(5000)], range(4)) for one in some]
    finally:
        sys.setswitchinterval(usual)
    assert sorted(taken) == list(range(20_000))


def test_a_programs_ports_are_free_ones() -> None:
    text = "a='localhost:8010' b='127.0.0.1:8020' c='localhost:8010' d='localhost:0' e='host:8010' f='sc://localhost:40123'"
    found = re.fullmatch(
        r"a='localhost:(\d+)' b='127.0.0.1:(\d+)' c='localhost:(\d+)' d='localhost:0' e='host:8010' f='sc://localhost:(\d+)'",
        own(text),
    )
    assert found is not None
    a, b, c, f = found.groups()
    assert a == c
    assert len({a, b, f, "8010", "8020", "40123"}) == 6


def test_no_default_is_the_machines() -> None:
    """A sink that names no directory joins whichever driver lives in the default one."""
    assert os.environ["AERON_DIR"] == str(dirs.DEFAULT)
    assert dirs.DEFAULT.name.startswith(dirs.PREFIX)
