"""What tests marked `interop` need of the machine, more than `make run` and `make test` do.

As a program it says in one line what of that is missing and how to get it; `make interop` begins with it, before anything is
built, so it imports nothing but Python's own library.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path


def _on_path(*tools: str) -> bool:
    return all(shutil.which(tool) for tool in tools)


def _exists(*patterns: str) -> bool:
    return any(found for pattern in patterns for found in Path("/").glob(pattern))


# Debian's packages, and whether each is there.
PACKAGES: Mapping[str, Callable[[], bool]] = {
    "openjdk-17-jdk-headless": partial(_on_path, "java", "javac"),
    "maven": partial(_on_path, "mvn"),
    "libclang-dev": partial(
        _exists, "usr/lib/llvm-*/lib/libclang*.so*", "usr/lib*/*/libclang*.so*", "usr/lib*/libclang*.so*"
    ),
    "uuid-dev": partial(_exists, "usr/include/uuid/uuid.h"),
    "libbsd-dev": partial(_exists, "usr/include/bsd/bsd.h"),
    "iproute2": partial(_on_path, "ip"),
    "systemd": partial(_on_path, "systemd-analyze"),
    "pkgconf": partial(_on_path, "pkg-config"),
    "abigail-tools": partial(_on_path, "abidw", "abidiff"),
    "buildah": partial(_on_path, "buildah"),
    "kubernetes-client": partial(_on_path, "kubectl"),
    "chromium": partial(_on_path, "chromium"),
    "zsh": partial(_on_path, "zsh"),
    "fish": partial(_on_path, "fish"),
    "wireguard-tools": partial(_on_path, "wg"),
    "wireguard-go": partial(_on_path, "wireguard-go"),
    "prometheus": partial(_on_path, "prometheus", "promtool"),
    "tshark": partial(_on_path, "tshark"),
}


def absent(*names: str) -> list[str]:
    """Which of these packages, or of all, are not here."""
    return [name for name in names or PACKAGES if not PACKAGES[name]()]


def remedy() -> str:
    """How to install what is missing, in one line; empty if nothing is."""
    packages = absent()
    steps = [
        f"apt install {' '.join(packages)}" if packages else "",
        "" if _on_path("cargo") else "install Rust's cargo (https://rustup.rs)",
        "" if os.geteuid() == 0 else "run it as root (hosts with a network of their own, a disk that fills)",
    ]
    return "; ".join(filter(None, steps))


if __name__ == "__main__":
    told = remedy()
    sys.exit(f"make interop needs more than make test: {told}" if told else 0)
