"""Tables that only their owner may read."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from common.options import Scalar


def write_private_csv(path: Path, titles: Sequence[str], rows: Iterable[Sequence[Scalar]]) -> None:
    """Write a CSV that only its owner may read, also in place of one that others could."""
    path.touch(mode=0o600)
    path.chmod(0o600)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(titles)
        writer.writerows(rows)
