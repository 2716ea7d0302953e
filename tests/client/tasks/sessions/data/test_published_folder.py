"""Which folders are one data set, and which several clients' tables."""

from pathlib import Path

import pytest

from client.tasks.sessions.data.log import CASE, TEST, TRAIN
from client.tasks.sessions.data.reader import is_published, parts_of


def folder(at: Path, *names: str) -> Path:
    for name in names:
        (at / name).touch()
    return at


@pytest.mark.parametrize(
    ("names", "parts"),
    [
        (("train.txt", "test.txt"), {"train.txt": TRAIN, "test.txt": TEST}),
        (("train.csv.gz", "SOURCE.md"), {"train.csv.gz": TRAIN}),
        (("train_sessions.txt.gz", "test_pairs.tsv.gz"), {"train_sessions.txt.gz": TRAIN, "test_pairs.tsv.gz": CASE}),
        (
            ("rsc_train_full.txt", "rsc_test.txt", "rsc_train_tr.txt"),
            {"rsc_train_full.txt": TRAIN, "rsc_test.txt": TEST},
        ),
        (
            ("users_test.txt.gz", "users_valid.txt.gz", "test.txt.gz"),
            {"users_valid.txt.gz": TRAIN, "users_test.txt.gz": TRAIN},
        ),
        (("events.csv", "category_tree.csv"), {"events.csv": TRAIN}),
        (("client-1.csv", "client-2.csv"), {}),
    ],
)
def test_files_and_their_parts(tmp_path: Path, names: tuple[str, ...], parts: dict[str, int]) -> None:
    found = parts_of(folder(tmp_path, *names))
    assert [(path.name, part) for path, part in found] == list(parts.items())
    assert is_published(tmp_path) == bool(parts)
