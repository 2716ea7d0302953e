"""Cost of a snapshot of all clients' state, in the folder of temporary files."""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from client.state import MemoryStore
from client.training.snapshot import Manifest, SnapshotFolder, dump_stores, load_stores


def measure_snapshot(stores: Sequence[MemoryStore], run: str) -> dict[str, float]:
    """Return the size of the state in MB, and the seconds to write it durably and to read it back."""
    manifest = Manifest(run, 0, "", "")
    with tempfile.TemporaryDirectory() as place:
        folder = SnapshotFolder(Path(place))
        marks = [time.monotonic()]
        folder.write(manifest, dump_stores(stores, run))
        marks.append(time.monotonic())
        _, state = folder.read(manifest)
        load_stores(state, [MemoryStore() for _ in stores], run)
        marks.append(time.monotonic())
    return {
        "mb_snapshot": state.bytes / 2**20,
        "seconds_snapshot": marks[1] - marks[0],
        "seconds_restore": marks[2] - marks[1],
    }
