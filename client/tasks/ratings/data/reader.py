"""Every form of ratings behind one door."""

from pathlib import Path

import numpy as np

from client.data.tables.reader import read_table
from client.data.tables.schema import DEFAULT_DIALECT, Dialect
from client.data.tables.split_files import TEST as TEST_SPLIT
from client.data.tables.split_files import split_files
from client.tasks.ratings.data.published_folder import PublishedRatings, Scale, files_of, form_of
from client.tasks.ratings.data.raters import FREE, TRAIN, Rater, Ratings
from client.tasks.ratings.data.rows import SPLITS, RatingRows, find_latest, find_scale, join_rows, to_people, to_rows
from client.tasks.ratings.schema import PEOPLE, SCHEMA
from common.errors import DataError
from common.tasks.ratings.vocabulary import ProductCatalogue


def read_raters(
    source: Path | str, products: ProductCatalogue | None = None, *, dialect: Dialect = DEFAULT_DIALECT
) -> Ratings:
    """Read the raters of one source, in the order of their names.

    If a person rated a product several times, the latest rating counts; without times, the last in the file.

    Args:
        source: Table `user,item,rating[,timestamp]` (CSV, TSV, Parquet or JSON lines, with or without a header);
            MovieLens 100K (`u.data`) or 1M (`ratings.dat`) or FilmTrust, as file or folder; or a folder of tables. All but
            Parquet may be gzipped.
        products: Vocabulary and scale of the federation; ratings of other products are skipped and counted in a note.
            None for the rated products, by name, on the published set's scale or else from 0 to the highest rating.
        dialect: Columns and forms of the owner's tables.

    Raises:
        DataError: The data are missing, empty or malformed, or a rating is off the scale; with file, line and column.
    """
    path = Path(source)
    form = form_of(path)
    scale = (products.low, products.high) if products else None
    dialect.check(SCHEMA)
    rows = join_rows(_read(path, form, scale, dialect))
    return _dataset(rows, products or _vocabulary(rows, find_scale(rows, form.scale if form else None, path)), path)


def _read(path: Path, form: PublishedRatings | None, scale: Scale | None, dialect: Dialect) -> list[RatingRows]:
    ratings, named = files_of(path, form)
    splits = {} if path.is_file() else {file: split for split, file in split_files(path)}
    train = TRAIN if TEST_SPLIT in splits.values() else FREE
    codes = [SPLITS.get(splits.get(file, ""), train) or train for file in ratings]
    tables = [
        to_rows(read_table(file, SCHEMA, dialect), scale, code) for file, code in zip(ratings, codes, strict=True)
    ]
    return tables + [to_people(read_table(file, PEOPLE)) for file in named]


def _vocabulary(rows: RatingRows, scale: Scale) -> ProductCatalogue:
    low, high = scale
    return ProductCatalogue(items=tuple(sorted(rows.items)), low=low, high=high)


def _dataset(rows: RatingRows, products: ProductCatalogue, path: Path) -> Ratings:
    if not rows.users:
        raise DataError("nobody; there is nothing to learn from", path)
    index = {name: k for k, name in enumerate(products.items)}
    item = np.array([index.get(name, -1) for name in rows.items], np.int64)[rows.item] if rows.items else rows.item
    counted = find_latest(rows)
    listed = counted[item[counted] >= 0]
    notes = []
    if repeated := len(rows.user) - len(counted):
        notes.append(f"{repeated} ratings replaced by a later one of the same person and product")
    if strange := len(counted) - len(listed):
        notes.append(f"{strange} ratings of products outside the vocabulary skipped")
    order = listed[np.argsort(rows.user[listed], kind="stable")]
    ends = np.cumsum(np.bincount(rows.user[order], minlength=len(rows.users)))[:-1]
    each = zip(rows.users, *(np.split(of[order], ends) for of in (item, rows.rating, rows.split)), strict=True)
    is_split = bool((rows.split != FREE).any())
    raters = [Rater(name, items, ratings, splits if is_split else None) for name, items, ratings, splits in each]
    return Ratings(tuple(sorted(raters, key=lambda rater: rater.name)), products, tuple(notes))
