"""The image of conf/container, and commands run from it as a runtime runs them: own root, read-only, own user, no privilege.

Needs Debian's buildah and apt-get, and root.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "container"
MUSL = ROOT / "build" / "musl"
USER = 10001

# In a mount namespace: the image's root with what a runtime mounts there, and no way to write to anything else.
_ENTER = f"""
root=$1 shared=$2 recordings=$3; shift 3
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mkdir -p "$root$shared"
mount --bind "$shared" "$root$shared"
mount --bind "$recordings" "$root/var/lib/aeron-archive"
mount -o remount,bind,ro "$root"
exec setpriv --no-new-privs /usr/sbin/chroot --userspec={USER}:{USER} --groups={USER} "$root" "$@"
"""


@dataclass(frozen=True, slots=True)
class Image:
    """A built image: where its root lies, and how it wants to be run."""

    root: Path
    config: dict[str, object]

    def command(self, shared: Path, recordings: Path, *arguments: str) -> list[str | Path]:
        """A command that runs `arguments` in the image, with a folder of shared memory at its own path, and recordings."""
        told = self.config["Env"]
        assert isinstance(told, list)
        inside = ["env", "-i", *(str(one) for one in told)]
        return [*inside, "unshare", "--mount", "sh", "-ec", _ENTER, "sh", self.root, shared, recordings, *arguments]


def musl_gcc() -> dict[str, str]:
    """Variables that have build.sh compile with Debian's musl, unpacked beside the system.

    Where musl is installed, a library in Spark's jars (snappy) takes the machine for one of musl, and Parquet fails.
    """
    root, compiler = MUSL / "root", MUSL / "musl-gcc"
    if not compiler.exists():
        packages = MUSL / "packages"
        packages.mkdir(parents=True, exist_ok=True)
        _run("sh", "-c", f"cd {packages} && apt-get -q download musl musl-dev musl-tools")
        for package in packages.glob("*.deb"):
            _run("dpkg-deb", "-x", str(package), str(root))
        (specs,) = root.rglob("musl-gcc.specs")
        text = re.sub(r"/usr/(?=(lib|include)/)", f"{root}/usr/", specs.read_text("utf-8"))
        specs.write_text(text, "utf-8")
        compiler.write_text(f'#!/bin/sh\nexec gcc "$@" -specs {specs}\n', "utf-8")
        compiler.chmod(0o755)
    return {"CC": str(compiler), "MUSL_COPYRIGHT": str(root / "usr/share/doc/musl/copyright")}


def build(storage: Path) -> Image:
    """Build executables and image, as docs/containers.md says, into a storage of one's own."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    tools = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _run(str(ROOT / "conf/container/build.sh"), **tools, **musl_gcc())
        buildah = ("buildah", "--storage-driver", "vfs", f"--root={storage / 'root'}", f"--runroot={storage / 'run'}")
        file = str(ROOT / "conf/container/Containerfile")
        _run(*buildah, "bud", "--isolation", "chroot", "-t", "aeron-spark", "-f", file, str(FOLDER))
        made = _run(*buildah, "from", "--name", "made", "aeron-spark").strip()
        config = json.loads(_run(*buildah, "inspect", "--type", "image", "aeron-spark"))["OCIv1"]["config"]
        return Image(root=Path(_run(*buildah, "mount", made).strip()), config=config)


def _run(*command: str, **variables: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | variables)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout
