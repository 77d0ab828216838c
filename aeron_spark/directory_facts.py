"""Facts of directories that other users may have made or may change, for `aeron-spark doctor`. Writes nothing."""

from __future__ import annotations

import grp
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from aeron_spark.archive_health import owner
from aeron_spark.driver import check_aeron_dir
from aeron_spark.errors import UsageError

OWNER_SETTING = "aeron.spark.dir.owner"
WRITERS_SETTING = "aeron.spark.dir.writers"


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryFacts:
    """A directory that is there: whose it is, and who may change it."""

    about: str
    path: Path
    link_target: str
    """What it leads to, if it is a symbolic link; else empty."""
    owner: str
    group: str
    mode: int
    parent_mode: int
    trouble: str
    """Why servers and clients of this user would not use it; empty where they would."""


def directory_facts(about: str, path: Path, settings: Mapping[str, str], *, may_be_link: bool) -> DirectoryFacts | None:
    """None where nothing is there. `settings` and the environment name the trusted owner and writers."""
    try:
        shown = path.resolve() if may_be_link else path.absolute()
        found, parent = shown.lstat(), shown.parent.stat()
    except OSError:
        return None
    trouble = ""
    try:
        check_aeron_dir(shown, owner=settings.get(OWNER_SETTING), writers=settings.get(WRITERS_SETTING))
    except UsageError as refusal:
        trouble = str(refusal)
    return DirectoryFacts(
        about=about,
        path=shown,
        link_target=str(shown.readlink()) if stat.S_ISLNK(found.st_mode) else "",
        owner=owner(shown),
        group=_group(found.st_gid),
        mode=stat.S_IMODE(found.st_mode),
        parent_mode=stat.S_IMODE(parent.st_mode),
        trouble=trouble,
    )


def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return f"group {number}"
