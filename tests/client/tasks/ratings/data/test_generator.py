"""The demo raters are people in a cinema."""

import numpy as np

from client.tasks.ratings.data.generator import FEWEST, demo_cinema, demo_raters
from common.tasks.ratings.vocabulary import demo_products

RATERS = demo_raters(0, 300, seed=0)
RATINGS = np.concatenate([rater.ratings for rater in RATERS])
ITEMS = np.concatenate([rater.items for rater in RATERS])


def test_a_rater_depends_on_seed_and_name_only() -> None:
    again = demo_raters(40, 50, seed=0)
    for ours, theirs in zip(again, RATERS[40:50], strict=True):
        assert ours.name == theirs.name
        np.testing.assert_array_equal(ours.items, theirs.items)
        np.testing.assert_array_equal(ours.ratings, theirs.ratings)
    [other] = demo_raters(40, 41, seed=1)
    assert other.ratings.tolist() != RATERS[40].ratings.tolist()


def test_ratings_are_stars_of_distinct_films() -> None:
    assert set(RATINGS.tolist()) == {1, 2, 3, 4, 5}
    assert all(len(set(rater.items.tolist())) == len(rater.items) >= FEWEST for rater in RATERS)
    assert ITEMS.max() < len(demo_products().items) == 240


def test_films_differ_in_quality_and_the_famous_are_better() -> None:
    cinema = demo_cinema()
    seen = np.bincount(ITEMS, minlength=240)
    mean = np.bincount(ITEMS, RATINGS, minlength=240) / np.maximum(seen, 1)
    often = seen >= 20
    assert np.corrcoef(mean[often], cinema.quality[often])[0, 1] > 0.8
    assert np.corrcoef(seen, cinema.quality)[0, 1] > 0.2
    assert np.sort(seen)[-24:].sum() > 0.3 * seen.sum(), "a tenth of the films has a third of the ratings"


def test_people_differ_in_level() -> None:
    residuals = RATINGS - demo_cinema().quality[ITEMS]
    person = np.repeat(np.arange(300), [len(rater.items) for rater in RATERS])
    levels = np.bincount(person, residuals) / np.bincount(person)
    assert 0.3 < levels.std() < 0.5
