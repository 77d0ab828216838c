"""What MkDocs calls while it builds the site: links out of docs/, generated reference, a check of the built pages.

A line `<!-- reference: NAME -->` of a page becomes what the function NAME of `reference.py` makes of the code.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path

import links
import reference
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

# Below MkDocs' own, whose warnings are errors.
LOG = logging.getLogger("mkdocs.hooks.aeron_spark")
REFERENCE = re.compile(r"^<!-- reference: (\w+) -->$", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files of the repository that pages link to, and those that these link to."""
    pending = [file.src_uri for file in files.documentation_pages()]
    while pending:
        page = pending.pop()
        if not links.in_repository(page).endswith(".md"):
            continue
        for found in links.targets(page, links.listing(links.in_repository(page))):
            if not found.startswith("repository/") or files.get_file_from_path(found):
                continue
            path = links.in_repository(found)
            if not (links.ROOT / path).is_file():
                LOG.warning("%s links to %s, which the repository does not have", page, path)
                continue
            files.append(File.generated(config, found, content=links.listing(path)))
            pending.append(found)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Write links as the site has them, and generate reference."""
    uri = page.file.src_uri
    text = links.without_html(links.rebased(markdown, uri, uri))
    return REFERENCE.sub(lambda match: getattr(reference, match[1])(uri), text)


def on_post_build(config: MkDocsConfig) -> None:
    """Check the pages that were built."""
    for problem in links.problems(Path(config.site_dir)):
        LOG.warning(problem)
