"""A server that speaks S3, with the catalog and the segments of an archive's folder in a bucket."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from moto.server import ThreadedMotoServer
from pyarrow import fs

from aeron_spark.archive.objects import CATALOG

KEYS = {"access_key": "of-a-test", "secret_key": "not-to-be-seen"}


@dataclass(frozen=True, slots=True)
class Store:
    """Where the server is, and the folder in it: servers of one process share their buckets."""

    endpoint: str
    bucket: str

    @property
    def prefix(self) -> str:
        """Of the folder's files."""
        return f"{self.bucket}/day"

    @property
    def _place(self) -> dict[str, str]:
        return {"endpoint_override": self.endpoint, "scheme": "http", "region": "us-east-1"}

    @property
    def uri(self) -> str:
        """For readers with the keys in their environment."""
        return f"s3://{self.prefix}?endpoint_override={self.endpoint}&scheme=http&region=us-east-1"

    @property
    def filesystem(self) -> fs.S3FileSystem:
        """Sees all buckets."""
        return fs.S3FileSystem(**KEYS, **self._place, allow_bucket_creation=True)

    def options(self, keys: Path) -> dict[str, str]:
        """Of the Spark source, without `access`; writes the file of keys."""
        keys.write_text(json.dumps(KEYS), encoding="utf-8")
        return {
            "path": f"s3://{self.prefix}",
            "storeOptions": json.dumps(self._place),
            "storeCredentialsFile": str(keys),
        }


@contextmanager
def store(folder: Path) -> Iterator[Store]:
    """The folder's files as they are now."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        made = Store(f"{host}:{port}", f"recordings-{port}")
        made.filesystem.create_dir(made.bucket)
        for file in folder.glob("*.*"):
            if file.name == CATALOG or file.suffix == ".rec":
                fs.copy_files(str(file), f"{made.prefix}/{file.name}", destination_filesystem=made.filesystem)
        yield made
    finally:
        server.stop()
