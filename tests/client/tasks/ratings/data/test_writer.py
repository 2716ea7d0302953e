"""Written files are read back with their splits, and with people who have no rating."""

from pathlib import Path

import numpy as np

from client.data.dataset import AnyDataset
from client.data.read import read_all
from client.tasks.ratings.data.raters import FREE, TEST, TRAIN, VALIDATION, Rater, Ratings, write_raters
from client.tasks.ratings.data.reader import read_raters
from client.tasks.ratings.task import TASK
from common.tasks.ratings.vocabulary import ProductCatalogue

PRODUCTS = ProductCatalogue(items=("cup, blue", 'the "best" cup', "7"), low=-1, high=1)

Plain = tuple[str, list[int], list[float]]


def plain(part: AnyDataset) -> list[Plain]:
    return [(rater.name, rater.items.tolist(), rater.ratings.tolist()) for rater in part.units]


def test_ratings_and_people_without_one_survive(tmp_path: Path) -> None:
    raters = (
        Rater("ann, the first", np.array([2, 0]), np.array([0.1 + 0.2, -1 / 3])),
        Rater("bob", np.zeros(0, np.int64), np.zeros(0)),
        Rater("cyd", np.array([1]), np.array([1.0])),
    )
    whole = Ratings(raters, PRODUCTS)
    write_raters(tmp_path / "client.csv", Ratings(raters, PRODUCTS))
    again = read_raters(tmp_path / "client.csv", PRODUCTS)
    assert (plain(again), again.notes) == (plain(whole), ())


def test_splits_survive(tmp_path: Path) -> None:
    splits = np.array([FREE, TRAIN, VALIDATION, TEST])
    raters = (
        Rater("ann", np.arange(4), np.arange(4.0), splits),
        Rater("bob", np.array([2]), np.array([1.0]), splits[:1]),
    )
    products = ProductCatalogue(items=("a", "b", "c", "d"))
    write_raters(tmp_path / "client.csv", Ratings(raters, products))
    again = read_raters(tmp_path / "client.csv", products)
    assert [rater.splits.tolist() for rater in again.units if rater.splits is not None] == [splits.tolist(), [FREE]]


def test_somebody_without_a_rating_alone_takes_part(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    TASK.write(path, Ratings((Rater("bob", np.zeros(0, np.int64), np.zeros(0)),), PRODUCTS))
    assert plain(read_all("ratings", str(path), vocabulary=PRODUCTS)) == [("bob", [], [])]
