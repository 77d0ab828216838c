"""What every Python test has: seeds, stack dumps of stuck tests, peers shared by a session, and a leak check."""

from __future__ import annotations

import faulthandler
import os
import random
import secrets
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aeron_spark.demo import java
from aeron_spark.errors import UsageError
from tests.kit import compatibility, dirs, processes, require, spark_jvm, stock, stock_c
from tests.kit.subject import Subject

# A test that runs longer shows the stacks of all threads and ends the session: nothing here takes that long.
STUCK_AFTER_S = 600
# Where the tests run in several processes, those begin with the files that take longest, so that they end together.
LONGEST_FIRST = ("attack", "system", "spark", "python", "interop", "conformance")
HERE = Path(__file__).parent
INTEROP = HERE / "interop"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--seed`, which repeats a session's random numbers, `--sample`, and `--subject`, what the interop tests test."""
    parser.addoption("--seed", type=int, help="seed of the tests' random numbers; default: $TEST_SEED, else a new one")
    parser.addoption(
        "--sample", type=int, default=1, help="one test in so many, other ones by another seed; default: all"
    )
    parser.addoption(
        "--subject",
        choices=["ours", "stock", "stock-c"],
        default="ours",
        help="what the interop tests test; stock proves them",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Choose the session's seed once, where stacks go (a test's own stderr ends with the session, unread), and heed Ctrl-C.

    And say what Spark needs: a Java, and a name for this machine that resolves, as its own need not. Most tests start no
    Spark and run without a Java; for the others, the summary says what is missing. The default Aeron directory is one of
    this session, as a driver of somebody else may live in the machine's.
    """
    config.addinivalue_line(
        "markers", f"{require.MARK}: needs more of the machine than `make run` (tests/kit/require.py)"
    )
    config.addinivalue_line(
        "markers",
        "more: shows with another engine or pyspark, or in the documentation, what `make test` has shown",
    )
    config.addinivalue_line("markers", compatibility.EXPLAINED)
    if config.option.seed is None:
        # An option, so that the workers of pytest-xdist are given it.
        config.option.seed = int(os.environ.get("TEST_SEED") or secrets.randbits(31))
    config.stash[_STDERR] = os.dup(2)
    config.stash[_SHORTFALLS] = []
    # Begun in the background of a shell without job control, Python ignores SIGINT, and so would everything that tests start.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    wrapped = Path(tempfile.mkdtemp(prefix="aeron-spark-test-java-"))
    config.add_cleanup(lambda: shutil.rmtree(wrapped))
    try:
        os.environ.update(java.environment(wrapped))
    except UsageError as error:
        config.stash[_NO_JAVA] = str(error)
    os.environ.setdefault("SPARK_LOCAL_HOSTNAME", "localhost")
    os.environ.update({name: value for name, value in spark_jvm.environment().items() if name not in os.environ})
    os.environ["AERON_DIR"] = str(dirs.DEFAULT)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests of the interop folder carry its mark, and all do whose subject is a stock peer; of others it is written.

    Of a sample the others are deselected.
    """
    for item in items:
        if INTEROP in item.path.parents or os.environ.get("PEER", "ours") != "ours":
            item.add_marker(require.MARK)
    if hasattr(config, "workerinput"):  # a process of pytest-xdist; all of them must have the same order
        items.sort(key=lambda item: _rank(item.path.relative_to(HERE).parts[0]))
    sample, seed = config.option.sample, config.option.seed
    kept = [item for item in items if random.Random(f"{seed}:{item.nodeid}").randrange(sample) == 0]
    config.hook.pytest_deselected(items=[*{*items} - {*kept}])
    items[:] = kept


def _rank(folder: str) -> int:
    return LONGEST_FIRST.index(folder) if folder in LONGEST_FIRST else len(LONGEST_FIRST)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let the kit know whether this test may use what `make test` does without."""
    require.mark(is_marked=item.get_closest_marker(require.MARK) is not None)


_STDERR = pytest.StashKey[int]()
_NO_JAVA = pytest.StashKey[str]()
_SHORTFALLS = pytest.StashKey[list[str | None]]()


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Print what a reader of a failure needs to repeat it."""
    return [
        f"seed: {config.option.seed} (repeat with --seed)",
        f"stock Aeron, if used: {' or else '.join(stock.releases())}; under test: {config.getoption('--subject')}",
        f"stock Aeron in C, if used: {stock_c.version()}",
    ]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the seed, which the header does not where pytest is to be quiet, and whether another stock release was used.

    That is, than the one to be compatible with.
    """
    terminalreporter.line(f"seed: {config.option.seed} (repeat with --seed)")
    if _NO_JAVA in config.stash:
        terminalreporter.line(config.stash[_NO_JAVA])
    for text in filter(None, {stock.shortfall(), *config.stash[_SHORTFALLS]}):
        terminalreporter.section("stock Aeron", yellow=True)
        terminalreporter.line(text)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A process of pytest-xdist tells the one that began it what that prints."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["shortfall"] = stock.shortfall()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take that from each process of pytest-xdist; one that died told nothing."""
    node.config.stash[_SHORTFALLS].append(getattr(node, "workeroutput", {}).get("shortfall"))


def _random(request: pytest.FixtureRequest) -> random.Random:
    return random.Random(f"{request.config.option.seed}:{request.node.nodeid}")


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """Random numbers of one test, from the session's seed and the test's name."""
    return _random(request)


@pytest.fixture(scope="module")
def module_rng(request: pytest.FixtureRequest) -> random.Random:
    """As `rng`, for what the tests of a file share."""
    return _random(request)


@pytest.fixture(autouse=True)
def _stuck(request: pytest.FixtureRequest) -> Iterator[None]:
    faulthandler.dump_traceback_later(STUCK_AFTER_S, exit=True, file=request.config.stash[_STDERR])
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="session", autouse=True)
def _leak_check() -> Iterator[None]:
    """No process of ours and no directory of ours outlives the session."""
    yield
    running = processes.end_all()
    left = dirs.leftovers()
    for path in left:
        dirs.remove(path)
    assert not running, f"left running: {running}"
    assert not left, f"left behind: {[str(path) for path in left]}"


@pytest.fixture(scope="session")
def subject(request: pytest.FixtureRequest) -> Subject:
    """What is under test."""
    return Subject(kind=request.config.getoption("--subject"))


@pytest.fixture
def aeron_dir() -> Iterator[Path]:
    """A fresh Aeron directory in shared memory, removed after the test."""
    with dirs.fresh("aeron") as path:
        yield path


@pytest.fixture
def archive_dir() -> Iterator[Path]:
    """A fresh archive folder, removed after the test."""
    with dirs.fresh("archive") as path:
        yield path


@pytest.fixture(scope="session")
def gateway() -> Iterator[stock.Gateway]:
    """The session's JVM with stock Aeron in it."""
    with stock.Gateway() as opened:
        yield opened


@pytest.fixture(scope="session")
def peer(gateway: stock.Gateway) -> Any:
    """The Java class `peers.Peer`."""
    return gateway.peer
