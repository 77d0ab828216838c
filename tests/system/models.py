"""What an auditor knows of recordings whose archive is killed, and reads of their folder."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from aeron_spark import DoubtWarning, Folder
from tests.conformance.archive.archive import Archive
from tests.conformance.archive.control import Session
from tests.kit.payload import payload

SEGMENT, TERM, FRAME = 131_072, 65_536, 1024
BODY = (FRAME - 32,)
CHANNEL = "aeron:ipc?term-length=64k|mtu=1408|init-term-id=0|term-id={}|term-offset=0"


@dataclass(slots=True)
class Model:
    """What a recording holds: [start, stop) of parts, each of which is messages 0, 1, ... of a key from where it begins."""

    start: int
    stop: int
    parts: list[tuple[int, int]] = field(default_factory=list)
    """Where a part begins, and its key; rising."""

    def message(self, position: int) -> bytes:
        """The message that begins at a position."""
        begins, key = [part for part in self.parts if part[0] <= position][-1]
        return payload(key, (position - begins) // FRAME, BODY[0])


def read(archive_dir: Path, models: Mapping[int, Model]) -> dict[int, tuple[int, int]]:
    """Every recording that is there, as [start, stop); every message is the model's, and none is missing."""
    found = {}
    with warnings.catch_warnings(), Folder(archive_dir) as folder:
        # Killed between the catalog's entry and its files, an archive leaves files behind the new stop, and readers say so.
        warnings.filterwarnings("ignore", ".*go on behind its stopPosition", DoubtWarning)
        for recording in folder.recordings():
            model, begins, stop = (
                models[recording.recording_id],
                recording.start_position,
                recording.stop_position,
            )
            assert stop is not None
            at = int(begins)
            for batch in folder.read(recording.recording_id, columns=["position", "value"]):
                for row in batch.to_pylist():
                    assert (row["position"], row["value"]) == (at, model.message(at))
                    at += FRAME
            assert at == stop
            found[int(recording.recording_id)] = (int(begins), int(stop))
    return found


class Killed:
    """An archive that is killed now and then, a session with it, and the auditor's model of its recordings."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self.session = Session(archive)
        self.models: dict[int, Model] = {}

    def restart(self) -> None:
        """Kill -9, and a new archive on the folder."""
        self.archive.kill()
        self.session.close()
        self.archive.start()
        self.session = Session(self.archive)
