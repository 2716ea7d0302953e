"""Files of a folder with the training part, and those with the test part."""

import re
from dataclasses import dataclass
from pathlib import Path

from client.data.tables.formats import files_in, plain_name
from client.data.tables.split_files import TEST as HELD_OUT
from client.data.tables.split_files import split_files
from client.tasks.sessions.data.log import CASE, TEST, TRAIN
from client.tasks.sessions.data.published_formats import FILES


@dataclass(frozen=True)
class PublishedSessions:
    """Names of a form's files, as patterns in lower case and without `.gz`, in the order of reading.

    Args:
        train: At least one file must be there.
        test: The test part, which may be missing.
        part: What the test part holds.
    """

    train: tuple[str, ...]
    test: str = ""
    part: int = TEST


FORMS = (
    PublishedSessions((r"users_train\.txt", r"users_valid\.txt", r"users_test\.txt")),
    PublishedSessions((r"train_sessions\.txt",), r"test_pairs\.tsv", CASE),
    PublishedSessions((r".+_train_full\.txt",), r".+_test\.txt"),
    PublishedSessions((r"train\.(txt|csv|tsv|jsonl|ndjson|parquet)",), r"test\.(txt|csv|tsv|jsonl|ndjson|parquet)"),
    *(PublishedSessions((name,)) for name in FILES),
)
"""Gowalla with users; SR-GNN's sets as texts; session-rec's; plain files; the originals.

Gowalla's own parts are ignored: they are a fraction of the whole."""


def is_published(folder: Path) -> bool:
    """Return True if a folder's files are parts of one data set, not several clients' tables."""
    return bool(parts_of(folder))


def parts_of(folder: Path) -> list[tuple[Path, int]]:
    """Return the files of the first form that fits, each with its part; none if no form does.

    Raises:
        DataError: Parts of a split in Parquet are missing.
    """
    if splits := split_files(folder):
        return [(file, TEST if split == HELD_OUT else TRAIN) for split, file in splits]
    for form in FORMS:
        train = [(path, TRAIN) for pattern in form.train for path in _files(folder, pattern)]
        if train:
            return train + [(path, form.part) for path in _files(folder, form.test)]
    return []


def _files(folder: Path, pattern: str) -> list[Path]:
    return [path for path in files_in(folder) if re.fullmatch(pattern, plain_name(path))]
