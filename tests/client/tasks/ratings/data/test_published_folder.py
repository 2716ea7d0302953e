"""The public sets: which files they are, their numbers, their scales."""

from collections.abc import Callable

import numpy as np
import pytest

from client.data.read import find_own_tables, partition
from client.tasks.ratings.data.raters import Ratings, is_published
from client.tasks.ratings.data.reader import read_raters
from tests.support.files import Writer, folder_of


@pytest.mark.parametrize("name", ["u.data", "U.DATA.gz", "ratings.dat", "filmtrust_874_train.tsv.gz", "ratings.txt"])
def test_a_published_file_makes_the_folder_one_set(text: Writer, name: str) -> None:
    folder = text("1 2 3", name=f"set/{name}").parent
    assert is_published(folder)
    assert find_own_tables("ratings", str(folder)) == []


def test_clients_tables_are_not_one_set(text: Writer) -> None:
    table = text("user,item,rating", name="set/client-1.csv")
    assert not is_published(table.parent)
    assert find_own_tables("ratings", str(table.parent)) == [table]


def test_people_of_the_trust_network_are_clients_without_a_rating(text: Writer) -> None:
    text("user\titem\trating", "0\t7\t2", name="set/filmtrust_874_train.tsv")
    text("user\titem\trating", "1\t7\t0.5", "0\t9\t4", name="set/filmtrust_874_valid.tsv")
    folder = text("user\tneighbour", "0\t1", "2\t11", name="set/filmtrust_874_social.tsv").parent
    dataset = read_raters(folder)
    assert {rater.name: len(rater.items) for rater in dataset.units} == {"0": 2, "1": 1, "11": 0, "2": 0}
    assert [len(part.units) for part in partition(dataset, 0)] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("name", "people", "empty", "count", "items", "scale", "histogram"),
    [
        ("movielens-100k", 943, 0, 100_000, 1682, (0, 5), [6110, 11370, 27145, 34174, 21201]),
        ("filmtrust", 874, 134, 18_662, 1957, (0.5, 4), [557, 687, 862, 1692, 2192, 4113, 3851, 4708]),
    ],
)
def test_the_real_sets_are_what_their_sources_say(
    shared: Callable[[str], Ratings],
    name: str,
    people: int,
    empty: int,
    count: int,
    items: int,
    scale: tuple[float, float],
    histogram: list[int],
) -> None:
    dataset = shared(name)
    ratings = np.concatenate([rater.ratings for rater in dataset.units])
    assert (len(dataset.units), len(ratings), len(dataset.vocabulary.items)) == (people, count, items)
    assert sum(not len(rater.items) for rater in dataset.units) == empty
    assert (dataset.vocabulary.low, dataset.vocabulary.high) == scale
    assert np.unique(ratings, return_counts=True)[1].tolist() == histogram
    assert dataset.notes == ()


def test_the_whole_of_filmtrust() -> None:
    dataset = read_raters(folder_of("filmtrust") / "ratings.txt.gz")
    assert (len(dataset.units), len(dataset.vocabulary.items)) == (1508, 2071)
    assert (dataset.vocabulary.low, dataset.vocabulary.high) == (0.5, 4)
    [note] = dataset.notes
    assert sum(len(rater.items) for rater in dataset.units) + int(note.split()[0]) == 35_497
