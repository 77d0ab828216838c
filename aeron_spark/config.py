"""Settings of driver and archive by their stock names, and where things are by default."""

from __future__ import annotations

import difflib
import itertools
import os
import pwd
import shutil
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

from aeron_spark._native._lib import ffi, lib
from aeron_spark._native.check import string
from aeron_spark.errors import UsageError

SettingValue: TypeAlias = str | int | bool | Path
# By property name ("aeron.dir") or environment name ("AERON_DIR"). Sizes and durations as text with their unit ("64k",
# "5s"); bare numbers are bytes or nanoseconds.
Settings: TypeAlias = Mapping[str, SettingValue]


def text(value: SettingValue) -> str:
    """Write a setting's value the way the stock configuration has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def known_names(*, of_driver: bool = True, of_archive: bool = True) -> list[str]:
    """Names of all settings of driver and archive, or of one of them."""
    found = []
    for is_wanted, name_of in ((of_driver, lib.as_driver_config_name), (of_archive, lib.as_archive_config_name)):
        names = map(name_of, itertools.count() if is_wanted else ())
        found += [string(name) for name in itertools.takewhile(lambda name: name != ffi.NULL, names)]
    return found


def environment_name(name: str) -> str:
    """The name by which the environment has a setting."""
    return name.upper().replace(".", "_")


def misspelt(names: Iterable[str]) -> dict[str, str]:
    """Names, as properties or of the environment, that are no setting but nearly one: with the name that is meant, likely.

    Names that are far from all are of other programs: property files are shared.
    """
    known = {environment_name(name): name for name in known_names()}
    found = {}
    for name in names:
        folded = environment_name(name)
        closest = [] if folded in known else difflib.get_close_matches(folded, known, n=1, cutoff=0.9)
        if closest:
            found[name] = closest[0] if name.isupper() else known[closest[0]]
    return found


def warn_misspelt(settings: Iterable[str], *, of_archive: bool) -> None:
    """A warning for each name that is no setting but nearly one, of an archive or else of a driver.

    Servers pass over what they do not know; driver and archive of one process get the same settings.
    """
    for name, nearest in misspelt(settings).items():
        if (".archive." in nearest.lower().replace("_", ".")) == of_archive:
            warnings.warn(f"{name} is no setting and has no effect, did you mean {nearest}?", UserWarning, stacklevel=3)


def default_aeron_dir() -> Path:
    """Aeron directory of a process that names none: `AERON_DIR`, else `/dev/shm/aeron-<user>`."""
    given = os.environ.get("AERON_DIR")
    return Path(given) if given else Path("/dev/shm") / f"aeron-{user_name(os.environ)}"  # noqa: S108


def user_name(environment: Mapping[str, str]) -> str:
    """As servers and clients name the user of the process: `USER`, else the system's name of the uid, else `default`."""
    try:
        return environment.get("USER") or pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return "default"  # a container with a uid of its own


def executable(name: str) -> Path:
    """Full path of `aeron-spark-driver` or `aeron-spark-archive`.

    Looked for in the folder of `AERON_SPARK_BIN`, then where this package's installation put it, then on PATH.
    UsageError where it is in none.
    """
    import importlib.metadata  # noqa: PLC0415 - a third of the time that a light verb takes to start

    folder = os.environ.get("AERON_SPARK_BIN")
    candidates = [Path(folder) / name] if folder else []
    try:
        files = importlib.metadata.distribution("aeron-spark").files or []
        candidates += [Path(str(file.locate())).resolve() for file in files if file.name == name]
    except importlib.metadata.PackageNotFoundError:
        pass
    on_path = shutil.which(name)
    candidates += [Path(on_path)] if on_path else []
    for path in candidates:
        if os.access(path, os.X_OK):
            return path
    raise UsageError(
        f"executable {name} was found neither in AERON_SPARK_BIN, nor with the package, nor on PATH: "
        "install the aeron-spark wheel, or name its folder in AERON_SPARK_BIN"
    )
