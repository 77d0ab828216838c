"""The documentation site and the demonstration's page, in a real browser at the width of a phone and of a desk.

Method: Chromium opens a page of each kind from the disk, without a server and a network. Pictures of what it showed are in
build/pictures, to be looked at.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from aeron_spark.demo.page import Command, page
from aeron_spark.demo.result import Device, Result, Sample
from tests.kit import require
from tests.kit.browser import Browser
from tests.kit.wait import wait_until

pytestmark = pytest.mark.interop

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "build" / "site"
PICTURES = ROOT / "build" / "pictures"
#: Of each kind: start, tutorial, how-to, wide tables, what is generated from the code, essays, decisions, specification.
PAGES = (
    *("index", "install", "tutorial/market-data", "how-to/from-kafka", "how-to/lakehouse", "compatibility", "operate"),
    *("top", "ui"),
    *("reference/spark-options", "reference/commands", "reference/python-archive", "reference/driver-settings", "reference/c"),
    *("explanation/positions", "decisions/36-planning-arrays", "spec/04-udp-protocol"),
)  # fmt: skip
PHONE, DESK = 390, 1280


@pytest.fixture(scope="module")
def site() -> Path:
    if not (SITE / "index.html").exists():
        require.missing("run `make docs`, which builds the site")
    return SITE


def test_what_is_wrong_with_a_page_is_noticed(browser: Browser, tmp_path: Path) -> None:
    """The checks below can fail."""
    wrong = tmp_path / "wrong.html"
    wrong.write_text(
        "<meta name='viewport' content='width=device-width'><img src='http://192.0.2.1/outside.png'>"
        "<div style='width: 500px'>wide</div>"
        "<script>console.error('broken'); throw new Error('thrown')</script>",
        "utf-8",
    )
    browser.open(wrong.as_uri(), PHONE)
    assert any("broken" in one for one in browser.complaints())
    assert any("thrown" in one for one in browser.complaints())
    assert "http://192.0.2.1/outside.png" in browser.requested()
    assert browser.overflow() > 0


def look(browser: Browser, path: Path, name: str, width: int) -> None:
    """Open a page of the disk: nothing complains, nothing comes from elsewhere, nothing sticks out."""
    browser.open(path.as_uri(), width)
    browser.picture(PICTURES / f"{name.replace('/', '-')}-{width}.png")
    assert browser.complaints() == []
    outside = [url for url in browser.requested() if not url.startswith((f"file://{path.anchor}", "data:", "blob:"))]
    assert outside == []
    assert browser.overflow() == 0


@pytest.mark.parametrize("width", [PHONE, DESK])
@pytest.mark.parametrize("name", PAGES)
def test_pages_of_the_site(browser: Browser, site: Path, name: str, width: int) -> None:
    look(browser, site / f"{name}.html", name, width)
    assert browser.value("document.querySelectorAll('h1').length") == 1


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_search_finds_a_word_offline(browser: Browser, site: Path, width: int) -> None:
    look(browser, site / "index.html", "index", width)
    browser.value("document.querySelector('label[for=__search]').click()")
    browser.value(
        "(input => { input.focus(); input.value = 'failOnDataLoss'; input.dispatchEvent(new Event('input'));"
        " input.dispatchEvent(new KeyboardEvent('keyup', {bubbles: true})) })"
        "(document.querySelector('.md-search__input'))"
    )

    def found() -> list[str]:
        return list(
            browser.value("[...document.querySelectorAll('.md-search-result__link')].map(link => link.getAttribute('href'))")
        )  # fmt: skip

    wait_until(lambda: any("spark" in link for link in found()), 30, "a result of the search")
    browser.picture(PICTURES / f"search-{width}.png")
    assert browser.complaints() == []


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_page_of_the_demonstration(browser: Browser, tmp_path: Path, width: int) -> None:
    samples = [
        Sample(seconds=at / 10, published=300 * at, rate=3000.0 * (at >= 20), behind=at / 10 if at < 20 else 0.5)
        for at in range(1, 81)
    ]
    result = Result(
        machine="A processor with a long name, 2 cores, Linux 6.18", spark="4.3.0", began="2026-11-25 08:00 UTC", rows=24_000,
        replay_seconds=0.4, samples=samples,
        devices=[Device("disk", "nvme0n1", 4565, "80.9 MiB read, 468.9 MiB written")],
    )  # fmt: skip
    next_one = Command("See the recording", f"{tmp_path}/bin/aeron-spark archive list {tmp_path}/archive")
    (tmp_path / "page.html").write_text(page(result, [next_one]), "utf-8")
    look(browser, tmp_path / "page.html", "demonstration", width)
