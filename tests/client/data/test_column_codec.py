"""Data sets as columns for another process."""

import dataclasses
import json
from collections import UserList
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client.data.child_reader import NoColumnError, decode_column, encode_column
from client.data.dataset import Dataset
from client.tasks.ratings.data.raters import Rater
from common.arrays import Array
from common.tasks.ratings.vocabulary import demo_products


@dataclasses.dataclass(frozen=True)
class Tally:
    """Dataclass whose fields do not determine it."""

    total: int = dataclasses.field(default=0, init=False)


def rater(name: str, splits: Array | None) -> Rater:
    return Rater(name, np.array([4, 7, 9]), np.array([1.5, np.nan, 3.0]), splits)


def test_a_data_set_comes_back_with_arrays_that_can_be_written() -> None:
    raters = (rater("an", None), rater("é", np.array([0, 1, 2], np.int64)), rater("", None))
    dataset = Dataset(raters, demo_products(), ("a note",), (("an", "é"), ()))
    arrays: list[Array] = []
    outline = json.loads(json.dumps(encode_column([dataset], arrays)))
    sent = iter([array.copy() for array in arrays])
    [found] = decode_column(outline, lambda: next(sent))
    assert (found.vocabulary, found.notes, found.clients) == (dataset.vocabulary, dataset.notes, dataset.clients)
    assert [unit.name for unit in found.units] == ["an", "é", ""]
    assert [unit.splits is None for unit in found.units] == [True, False, True]
    np.testing.assert_array_equal(found.units[1].ratings, raters[1].ratings)
    found.units[0].items[0] = 5


@pytest.mark.parametrize(
    "column",
    [
        [1, "one"],
        [{"a": 1}],
        [UserList([1])],
        [Path()],
        [Tally()],
        [np.array([1]), np.array([[1]])],
        [np.array([1]), np.array([1.0])],
        [np.array([None])],
    ],
)
def test_values_without_a_common_form_are_refused(column: list[Any]) -> None:
    with pytest.raises(NoColumnError):
        encode_column(column, [])
