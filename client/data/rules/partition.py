"""One file of many users as several clients' files."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from client.data.rules.homes import Dataset, Home
from client.data.rules.table import write_table
from common.errors import DataError


def partition(homes: Sequence[Home], parts: int, seed: int) -> list[tuple[Home, ...]]:
    """Deal the homes out in the order of a seeded hash of their users; part sizes differ by one at most.

    Raises:
        DataError: More parts than homes.
    """
    if not 1 <= parts <= len(homes):
        raise DataError(f"cannot share {len(homes)} homes among {parts} clients; ask for 1 to {len(homes)} clients")
    shuffled = sorted(homes, key=lambda home: hashlib.sha256(f"{seed}:{home.user}".encode()).digest())
    return [tuple(sorted(shuffled[part::parts], key=lambda home: home.user)) for part in range(parts)]


def write_partition(dataset: Dataset, folder: Path, parts: int, seed: int) -> list[Path]:
    """Write each part as a table `client-<number>.csv`, readable by its owner only, and give the paths back.

    Raises:
        DataError: More parts than homes.
    """
    shares = partition(dataset.homes, parts, seed)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"client-{number}.csv" for number in range(1, parts + 1)]
    for path, share in zip(paths, shares, strict=True):
        path.touch(mode=0o600)
        write_table(path, share, dataset.catalogue)
    return paths
