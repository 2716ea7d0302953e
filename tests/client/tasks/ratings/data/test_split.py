"""What is trained on, when it arrives, and what is held out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.tasks.ratings.data.raters import Rater, SplitRater, arrived, split_rater
from common.tasks.ratings.options import RatingsOptions
from common.tasks.ratings.vocabulary import ProductCatalogue

PRODUCTS = ProductCatalogue(items=tuple(f"p{k}" for k in range(40)), low=0.5, high=4)


def rater(count: int, name: str = "ann") -> Rater:
    rng = np.random.default_rng(count)
    return Rater(name, rng.permutation(40)[:count], rng.integers(1, 9, count) / 2)


def split(count: int, name: str = "ann", seed: int = 0, **options: float) -> SplitRater:
    return split_rater(rater(count, name), PRODUCTS, RatingsOptions(**options), seed)


@pytest.mark.parametrize(
    ("count", "train", "validation", "test"), [(0, 0, 0, 0), (1, 1, 0, 0), (4, 4, 0, 0), (5, 4, 0, 1), (33, 27, 0, 6)]
)
def test_one_in_five_is_held_out_rounded_down(count: int, train: int, validation: int, test: int) -> None:
    made = split(count)
    assert (len(made.train), len(made.validation), len(made.test)) == (train, validation, test)


@given(st.integers(0, 40), st.floats(0.05, 0.9), st.floats(0, 0.9), st.integers(0, 9))
def test_every_rating_is_in_one_part_and_one_is_left_to_train_on(
    count: int, test_share: float, validation_share: float, seed: int
) -> None:
    made = split(count, seed=seed, test_share=test_share, validation_share=validation_share)
    parts = (made.train, made.validation, made.test)
    whole = {int(i): (r - 0.5) / 3.5 for i, r in zip(made.rater.items, made.rater.ratings, strict=True)}
    assert {int(i): v for part in parts for i, v in zip(part.items, part.values, strict=True)} == whole
    assert sum(map(len, parts)) == count
    assert len(made.train) >= min(count, 1)


def test_it_depends_on_seed_and_name_and_test_not_on_validation() -> None:
    first = split(30).test.items.tolist()
    assert split(30).test.items.tolist() == first
    assert split(30, validation_share=0.3).test.items.tolist() == first
    assert split(30, seed=1).test.items.tolist() != first
    assert split(30, name="bob").test.items.tolist() != first


def test_half_is_there_at_the_start_and_the_rest_arrives_evenly() -> None:
    assert [arrived(10, t, 5) for t in range(6)] == [5, 6, 7, 8, 9, 10]
    assert [arrived(5, t, 4) for t in range(5)] == [3, 3, 4, 4, 5]
    assert [arrived(7, t, 1) for t in range(2)] == [4, 7]
    assert arrived(9, 12, 10) == 9, "a run that goes on has all"


@given(st.integers(0, 500), st.integers(1, 100))
def test_arrivals_never_go_back_and_end_with_everything(count: int, rounds: int) -> None:
    there = [arrived(count, t, rounds) for t in range(rounds + 1)]
    steps = np.diff(there)
    assert (there[0], there[-1]) == (-(-count // 2), count)
    assert steps.min() >= 0
    assert steps.max() - steps.min() <= 1
