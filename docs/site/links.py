"""Links of pages: from the repository's places into the site's, and whether those of the built site lead somewhere.

A link that leaves docs/ leads to a copy of that file in the site, in the folder `repository/`: Markdown as a page, other text
as a listing. So pages link as they do in the repository, and the site has no dead end.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[2]
# Code first, so that brackets in it are no links.
LINK = re.compile(r"^```.*?^```|`[^`\n]*`|\]\((?P<target>[^)#:\s]+)(?P<anchor>#[^)\s]*)?\)", re.DOTALL | re.MULTILINE)
# What a page calls <name>, outside of code, is no HTML.
PLACEHOLDER = re.compile(r"^```.*?^```|`[^`\n]*`|<(?!br>|https?:)(?=[a-z])", re.DOTALL | re.MULTILINE)
LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
OUTSIDE_CSS = re.compile(r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\s\"')]+)")


def in_repository(uri: str) -> str:
    """Path in the repository of a page of the site."""
    if not uri.startswith("repository/"):
        return f"docs/{uri}"
    path = uri.removeprefix("repository/")
    return path if (ROOT / path).is_file() else path.removesuffix(".md")


def in_site(path: str) -> str:
    """Name in the site of a file of the repository; a folder is its README."""
    if (ROOT / path).is_dir():
        path = f"{path}/README.md"
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"repository/{path}" if path.endswith(".md") else f"repository/{path}.md"


def target_of(page: str, link: str) -> str:
    """Name in the site of what a page, by its name in the site, links to."""
    return in_site(posixpath.normpath(posixpath.join(posixpath.dirname(in_repository(page)), link)))


def targets(page: str, text: str) -> Iterator[str]:
    """Names in the site of all that a page links to."""
    return (target_of(page, link["target"]) for link in LINK.finditer(text) if link["target"])


def rebased(text: str, page: str, onto: str) -> str:
    """Text of one page, with its links as another one writes them in the site."""

    def link(match: re.Match[str]) -> str:
        if match["target"] is None:
            return match[0]
        found = posixpath.relpath(target_of(page, match["target"]), posixpath.dirname(onto) or ".")
        return f"]({found}{match['anchor'] or ''})"

    return LINK.sub(link, text)


def without_html(text: str) -> str:
    """Text in which `<name>` stays readable. Pages have no HTML but line breaks."""
    return PLACEHOLDER.sub(lambda match: "&lt;" if match[0] == "<" else match[0], text)


def listing(path: str) -> str:
    """The page of a file of the repository."""
    text = (ROOT / path).read_text("utf-8")
    return text if path.endswith(".md") else f"# {path}\n\n```{Path(path).suffix[1:]}\n{text}\n```\n"


class Built(HTMLParser):
    """Of a page that was built: its anchors, its links, and what a browser loads with it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors, self.links, self.loads = set[str](), set[str](), set[str]()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect."""
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag in LOADS and LOADS[tag] in values and values.get("rel") not in ("next", "prev", "canonical"):
            self.loads.add(values[LOADS[tag]])
        if tag == "a" and "href" in values:
            self.links.add(values["href"])


def problems(site: Path) -> Iterator[str]:
    """Links and anchors of a built site that lead nowhere, and what its pages and styles load from outside."""
    # The error page has the links of a page at the top, wherever it is shown.
    pages = {path: Built(path.read_text("utf-8")) for path in sorted(site.rglob("*.html")) if path.name != "404.html"}
    for path, built in pages.items():
        name = path.relative_to(site)
        for load in sorted(built.loads):
            parts = urlsplit(load)
            if parts.netloc or parts.scheme not in ("", "data"):
                yield f"{name} loads {load} from outside"
        for link in sorted(built.links | built.loads):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                yield f"{name}: dead link {link}"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{name}: dead link {link}, the page has no such anchor"
    for path in sorted(site.rglob("*.css")):
        for load in OUTSIDE_CSS.findall(path.read_text("utf-8")):
            yield f"{path.relative_to(site)} loads {load} from outside"
