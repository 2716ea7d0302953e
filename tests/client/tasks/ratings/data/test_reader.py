"""Tables of ratings in every plain form, the demo, folders, and bad input."""

import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from client.data.read import read_all
from client.tasks.ratings.data.raters import FREE, TEST, TRAIN, Ratings
from client.tasks.ratings.data.reader import read_raters
from client.tasks.ratings.task import TASK
from common.errors import DataError, NothingYetError, VocabularyError
from common.tasks.ratings.vocabulary import ProductCatalogue, demo_products
from tests.support.files import Writer

HEADER = "user,item,rating,timestamp"
ROWS = ("bob,tea,4,10", "ann,tea,2.5,11", "bob,milk,1,12")
EXPECTED = {"ann": {"tea": 2.5}, "bob": {"milk": 1.0, "tea": 4.0}}


def ratings(dataset: Ratings) -> dict[str, dict[str, float]]:
    """User -> product -> rating."""
    names = dataset.vocabulary.items
    return {
        r.name: dict(sorted((names[i], v) for i, v in zip(r.items.tolist(), r.ratings.tolist(), strict=True)))
        for r in dataset.units
    }


def test_the_demo_or_some_of_it() -> None:
    assert len(read_all("ratings", "demo").units) == TASK.demo_units
    some = read_all("ratings", "demo:3-9", vocabulary=demo_products(), seed=2)
    assert [rater.name for rater in some.units] == [f"rater-0000{k}" for k in range(3, 9)]


def test_the_demo_has_its_own_products_only() -> None:
    with pytest.raises(VocabularyError, match="embedded data do not fit"):
        read_all("ratings", "demo", vocabulary=ProductCatalogue(items=("tea",)))


@pytest.mark.parametrize(("name", "mark"), [("a.csv", ","), ("a.tsv", "\t"), ("a.csv.gz", ","), ("a.csv", ";")])
@pytest.mark.parametrize("header", [HEADER, "userId,movieId,Rating,unix review time", ""])
def test_tables_with_and_without_a_header(text: Writer, name: str, mark: str, header: str) -> None:
    lines = (header, *ROWS) if header else ROWS
    dataset = read_raters(text(*(line.replace(",", mark) for line in lines), name=name))
    assert ratings(dataset) == EXPECTED
    assert dataset.vocabulary == ProductCatalogue(items=("milk", "tea"), low=0, high=4)
    assert dataset.notes == ()


def test_blanks_and_two_colons(text: Writer) -> None:
    """FilmTrust's and MovieLens 1M's separators; the names of the files tell the scale."""
    film = read_raters(text("1 215 3", "1 250 2", "2 215 0.5", name="ratings.txt.gz"))
    assert ratings(film) == {"1": {"215": 3.0, "250": 2.0}, "2": {"215": 0.5}}
    assert (film.vocabulary.low, film.vocabulary.high) == (0.5, 4)
    lens = read_raters(text("1::1193::5::978300760", "2::661::3::978302109", name="ratings.dat"))
    assert ratings(lens) == {"1": {"1193": 5.0}, "2": {"661": 3.0}}
    assert (lens.vocabulary.low, lens.vocabulary.high) == (0, 5)


def test_json_lines(text: Writer) -> None:
    lines = [json.dumps(dict(zip(HEADER.split(","), row.split(","), strict=True))) for row in ROWS]
    lines[1] = '{"item": "tea", "user": "ann", "rating": 2.5, "timestamp": 11, "note": null}'
    assert ratings(read_raters(text(*lines, name="a.jsonl"))) == EXPECTED
    assert ratings(read_raters(text(lines[0], "", *lines[1:], name="b.ndjson.gz"))) == EXPECTED


def test_parquet(tmp_path: Path) -> None:
    columns = list(zip(*(row.split(",") for row in ROWS), strict=True))
    table = pyarrow.table(
        {"user": columns[0], "item": columns[1], "rating": [4.0, 2.5, 1.0], "timestamp": [10, 11, 12]}
    )
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    assert ratings(read_raters(tmp_path / "a.parquet")) == EXPECTED


def test_of_several_ratings_of_one_product_the_latest_counts(text: Writer) -> None:
    timed = read_raters(text(HEADER, "ann,tea,1,30", "ann,tea,2,20", "ann,tea,3,30", "ann,tea,4,10"))
    assert ratings(timed) == {"ann": {"tea": 3.0}}, "of two at the same time the one further down"
    assert timed.notes == ("3 ratings replaced by a later one of the same person and product",)
    untimed = read_raters(text("user,item,rating", "ann,tea,1", "bob,tea,5", "ann,tea,2"))
    assert ratings(untimed) == {"ann": {"tea": 2.0}, "bob": {"tea": 5.0}}


def test_under_a_vocabulary_other_products_are_skipped_and_people_stay(text: Writer) -> None:
    path = text(HEADER, *ROWS, "cyd,salt,3,1")
    dataset = read_raters(path, ProductCatalogue(items=("tea", "rum"), low=0, high=5))
    assert ratings(dataset) == {"ann": {"tea": 2.5}, "bob": {"tea": 4.0}, "cyd": {}}
    assert dataset.notes == ("2 ratings of products outside the vocabulary skipped",)


def test_a_person_may_be_named_without_a_rating(text: Writer) -> None:
    assert ratings(read_raters(text("user,item,rating", "ann,tea,1", "zoe,,"))) == {"ann": {"tea": 1.0}, "zoe": {}}


def test_a_folder_of_tables_is_one_set(text: Writer) -> None:
    text(HEADER, ROWS[0], name="set/a.csv")
    text("user\titem\trating", "ann\ttea\t2.5", name="set/b.tsv.gz")
    folder = text('{"user": "bob", "item": "milk", "rating": 1}', name="set/c.jsonl").parent
    (folder / "readme.md").write_text("not data")
    assert ratings(read_raters(folder)) == EXPECTED


def test_the_scale_begins_below_zero_where_ratings_do(text: Writer) -> None:
    jokes = read_raters(text("user,item,rating", "ann,a,-9.5", "ann,b,10"))
    assert (jokes.vocabulary.low, jokes.vocabulary.high) == (-9.5, 10)


def test_a_published_name_does_not_make_ratings_lie_on_its_scale(text: Writer) -> None:
    dataset = read_raters(text("1 1 10", "1 2 1", name="ratings.txt"))
    assert (dataset.vocabulary.low, dataset.vocabulary.high) == (0, 10)


@pytest.mark.parametrize(
    ("rows", "line", "column", "message"),
    [
        (("ann,tea,4,1", "bob,tea,good,1"), 3, "rating", "not a number"),
        (("ann,tea,4,1", "", "bob,tea,,1"), 4, "rating", "empty cell"),
        (("ann,tea,4,1", "bob,,4,1"), 3, "item", "empty cell"),
        ((",tea,4,1",), 2, "user", "empty cell"),
        (("ann,tea,4,noon",), 2, "timestamp", "not a time"),
        (("ann,tea,inf,1",), 2, "rating", "infinite"),
        (("zoe,,,", "ann,tea,4.5,1", "bob,tea,6,1"), 4, "rating", "off the federation's scale, which goes from 0 to 5"),
        (("ann,tea,nan,1",), 2, "rating", "'nan' stands for a missing value"),
    ],
)
def test_a_bad_cell_is_named_by_file_line_and_column(
    text: Writer, rows: tuple[str, ...], line: int, column: str, message: str
) -> None:
    path = text(HEADER, *rows)
    with pytest.raises(DataError, match=message) as caught:
        read_raters(path, ProductCatalogue(items=("tea",), low=0, high=5))
    assert (caught.value.path, caught.value.line, caught.value.column) == (str(path), line, column)


def test_a_column_names_splits_and_a_bad_one_is_named(text: Writer) -> None:
    header, rows = "user,item,rating,split", ("ann,tea,4,train", "ann,rum,3,test", "ann,gin,2,")
    splits = read_raters(text(header, *rows)).units[0].splits
    assert splits is not None
    assert splits.tolist() == [TRAIN, TEST, FREE]
    with pytest.raises(
        DataError, match=r"line 3, column 'split': 'tset' is no split \(1 of 3 cells\); write one of train"
    ):
        read_raters(text(header, rows[0], "ann,rum,3,tset", rows[2]))


def test_people_who_rated_nothing_make_no_vocabulary_and_have_a_place_in_one(text: Writer) -> None:
    path = text("user,item,rating", "zoe,,", "ann,,")
    with pytest.raises(NothingYetError, match="no rating") as caught:
        read_raters(path)
    assert caught.value.path == str(path)
    assert ratings(read_raters(path, ProductCatalogue(items=("tea",)))) == {"ann": {}, "zoe": {}}


@pytest.mark.parametrize("lines", [("user,item,rating",), ("user,item,rating", "ann,tea,0")])
def test_nobody_and_nothing_but_zeros_are_more_than_nothing_yet(text: Writer, lines: tuple[str, ...]) -> None:
    with pytest.raises(DataError) as caught:
        read_raters(text(*lines))
    assert not isinstance(caught.value, NothingYetError)


@pytest.mark.parametrize(
    ("name", "lines", "line", "message"),
    [
        ("a.csv", ("user,item", "ann,tea"), 1, "no column 'rating'; the table needs user, item and rating"),
        ("a.csv", ("thing,stars", "tea,4"), 1, "no column 'user'"),
        ("a.csv", (HEADER, "ann,tea,4"), 2, "3 cells, but the first line has 4"),
        ("a.dat", ("1::2::3::4", "1::2::3"), 2, "3 cells, but the first line has 4"),
        ("a.jsonl", ('{"user": "ann"', ""), 1, "not a JSON object"),
        ("a.jsonl", ('{"user": "a", "item": "b", "rating": 1}', "[1]"), 2, "not a JSON object"),
        ("a.jsonl", ("", ""), 0, "empty"),
        ("a.csv", ("user,item,rating", "ann,,"), 0, "no rating"),
        ("a.csv", ("user,item,rating", "ann,tea,0"), 0, "all 1 ratings are 0, so the scale is unknown"),
    ],
)
def test_what_is_no_table_of_ratings_is_refused(
    text: Writer, name: str, lines: tuple[str, ...], line: int, message: str
) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read_raters(text(*lines, name=name))
    assert caught.value.line == line


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file or folder"):
        read_raters(tmp_path / "ratings.csv")
    with pytest.raises(DataError, match="holds no table"):
        read_raters(tmp_path)
