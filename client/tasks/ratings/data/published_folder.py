"""Files of ratings in a folder, and the public set that they belong to."""

import re
from dataclasses import dataclass
from pathlib import Path

from client.data.tables.formats import files_in, find_tables, plain_name

Scale = tuple[float, float]
"""Ratings that count as 0 and as 1."""


@dataclass(frozen=True)
class PublishedRatings:
    """A published set.

    Args:
        ratings: Names of its files, a pattern in lower case and without `.gz`.
        scale: The ratings that count as 0 and as 1 (explore-ratings.md §1: MovieLens r/5, FilmTrust (r − .5)/3.5).
        people: Name of a file that names people, who may have no rating.
    """

    ratings: str
    scale: Scale
    people: str = ""


FORMS = (
    PublishedRatings(r"filmtrust_\d+_(train|valid)\.tsv", (0.5, 4.0), r"filmtrust_\d+_social\.tsv"),
    PublishedRatings(r"ratings\.txt", (0.5, 4.0)),
    PublishedRatings(r"u\.data", (0.0, 5.0)),
    PublishedRatings(r"ratings\.dat", (0.0, 5.0)),
)
"""FilmTrust as BGTplanner uses it, whole (LibRec), MovieLens 100K and 1M.

People of FilmTrust's trust network without a rating are clients too: 134 of 874."""


def form_of(path: Path) -> PublishedRatings | None:
    """Return the set that a file, or a folder's files, belong to."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return next((form for form in FORMS for file in files if _is(file, form.ratings)), None)


def is_published(folder: Path) -> bool:
    """Return True if a folder's files are parts of one data set, not several clients' tables."""
    return form_of(folder) is not None


def files_of(path: Path, form: PublishedRatings | None) -> tuple[list[Path], list[Path]]:
    """Return the files of ratings, and those of people: the set's, or every table.

    Raises:
        DataError: Nothing has this path, or the folder holds no table.
    """
    if form is None or path.is_file():
        return find_tables(path), []
    files = files_in(path)
    return [file for file in files if _is(file, form.ratings)], [file for file in files if _is(file, form.people)]


def _is(path: Path, pattern: str) -> bool:
    return bool(pattern) and bool(re.fullmatch(pattern, plain_name(path)))
