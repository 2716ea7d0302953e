"""Files of splits: Parquet as on Hugging Face, and `ml.train.inter` as by RecBole."""

import re
from collections import defaultdict
from pathlib import Path

from common.errors import DataError

PART = re.compile(r"(?P<split>\w[\w.]*)-(?P<part>\d{5})-of-(?P<parts>\d{5})\.parquet")
"""Name of a part: its split, its number from 0, and the number of parts."""

ATOMIC = re.compile(r".+\.(train|valid|test)\.inter")
"""Name of a split's file from RecBole."""

DATA = "data"
"""Usual folder of the parts; a configuration has a folder of its own name."""

TEST, VALIDATION = "test", ("validation", "valid")
"""Names of the splits that are held out."""


def splits_of(folder: Path) -> dict[str, list[Path]]:
    """Return the files of each split: of the folder, of `data` in it, or of its only folder with parts.

    Raises:
        DataError: Parts of a split are missing.
    """
    for place in (folder, folder / DATA):
        if found := _parts_in(place):
            return found
    inside = [found for path in _folders(folder) if (found := _parts_in(path))]
    return inside[0] if len(inside) == 1 else {}


def clients_in(folder: Path) -> list[Path]:
    """Return the folders side by side that each hold splits; none if the folder holds splits itself.

    Raises:
        DataError: Parts of a split are missing.
    """
    found = [] if splits_of(folder) else [path for path in _folders(folder) if splits_of(path)]
    return found if len(found) > 1 else []


def split_files(folder: Path) -> list[tuple[str, Path]]:
    """Return split and file of all parts of a folder, or of the folders side by side in it.

    Raises:
        DataError: Parts of a split are missing.
    """
    sources = [splits_of(folder)] if splits_of(folder) else [splits_of(path) for path in clients_in(folder)]
    return [(split, file) for splits in sources for split, files in splits.items() for file in files]


def _parts_in(folder: Path) -> dict[str, list[Path]]:
    """Return the files of each split in a folder, the test split last."""
    matches = [PART.fullmatch(path.name) for path in sorted(folder.glob("*.parquet")) if path.is_file()]
    found: dict[str, dict[int, Path]] = defaultdict(dict)
    numbers: dict[str, int] = {}
    for match in matches:
        if match:
            found[match["split"]][int(match["part"])] = folder / match.string
            numbers[match["split"]] = max(numbers.get(match["split"], 0), int(match["parts"]))
    for split, files in found.items():
        missing = [part for part in range(numbers[split]) if part not in files]
        if missing:
            names = [f"{split}-{part:05d}-of-{numbers[split]:05d}.parquet" for part in missing[:3]]
            more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
            raise DataError(f"{', '.join(names)}{more} missing; download all parts of the split", folder)
    for path in sorted(folder.glob("*.inter")):
        if match := ATOMIC.fullmatch(path.name):
            found[match[1]][len(found[match[1]])] = path
    return {split: list(found[split].values()) for split in sorted(found, key=lambda name: (name == TEST, name))}


def _folders(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if path.is_dir() and not path.is_symlink()]
