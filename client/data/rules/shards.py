"""One client's share of a source: how a whole data set is cut is decided here, once, for every way of running."""

import hashlib
from pathlib import Path

from client.data.rules.homes import Dataset
from client.data.rules.partition import partition
from client.data.rules.reader import DEMO_HOMES, read_homes
from common.errors import DataError
from common.tasks.rules import Catalogue


def read_shard(source: str, part: tuple[int, int], seed: int, catalogue: Catalogue | None = None) -> Dataset:
    """The k-th of K parts of a source, part = (k, K); demo homes are made for this part only.

    Raises:
        DataError: The source cannot be read, or has fewer homes than parts.
    """
    k, parts = part
    if parts == 1:
        return read_homes(source, catalogue, seed=seed)
    if _is_demo(source):
        return read_homes(demo_shard(source, part), catalogue, seed=seed)
    whole = read_homes(source, catalogue, seed=seed)
    return Dataset(partition(whole.homes, parts, seed)[k], whole.catalogue, whole.notes)


def demo_shard(source: str, part: tuple[int, int]) -> str:
    """`demo:0-200` cut into K runs of nearly equal length: the k-th."""
    start, stop = map(int, source.partition(":")[2].split("-")) if ":" in source else (0, DEMO_HOMES)
    k, parts = part
    return f"demo:{start + k * (stop - start) // parts}-{start + (k + 1) * (stop - start) // parts}"


def fingerprint(source: str, part: tuple[int, int], seed: int) -> str:
    """What state is bound to: other data, other fingerprint.

    Raises:
        DataError: A file may not be read.
    """
    digest = hashlib.sha256(f"{source if _is_demo(source) else ''}|{part}|{seed}".encode())
    path = Path(source)
    try:
        for file in sorted(path.iterdir()) if path.is_dir() else [path]:
            digest.update(file.read_bytes() if file.is_file() else b"")
    except OSError as error:
        raise DataError(error.strerror or "cannot be read", error.filename or path) from None
    return digest.hexdigest()


def _is_demo(source: str) -> bool:
    """Whether the homes are made, not read; a file may well be called demo.csv."""
    return source == "demo" or source.startswith("demo:")
