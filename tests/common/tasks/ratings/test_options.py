"""Vocabulary and options of the ratings task."""

import numpy as np
import pytest
from pydantic import ValidationError

from common.config.parse import parse
from common.errors import ConfigError, DataError
from common.tasks.ratings.vocabulary import ProductCatalogue, demo_products

FILMS = ProductCatalogue(items=("Jaws", "Alien"), low=0.5, high=4)


def test_products_travel_as_json() -> None:
    assert ProductCatalogue.from_json(FILMS.to_json()) == FILMS
    assert len(set(demo_products().items)) == 240


def test_ratings_as_shares_of_the_scale_and_back() -> None:
    """Check FilmTrust (r − .5)/3.5 and MovieLens r/5."""
    shares = FILMS.scaled(np.array([0.5, 2.25, 4.0]))
    np.testing.assert_allclose(shares, [0, 0.5, 1])
    np.testing.assert_allclose(FILMS.unscaled(shares), [0.5, 2.25, 4.0])
    np.testing.assert_allclose(demo_products().scaled(np.arange(6.0)), [0, 0.2, 0.4, 0.6, 0.8, 1])


@pytest.mark.parametrize(
    ("items", "low", "high", "message"),
    [
        (("a", "a"), 0, 5, "listed twice"),
        ((), 0, 5, "list of products is empty"),
        (("a", ""), 0, 5, "has no name"),
        (("a",), 5, 5, "the scale from 5 to 5"),
        (("a",), 5, 1, "the scale from 5 to 1"),
        (("a",), 0, np.inf, "the scale from 0 to inf"),
    ],
)
def test_an_invalid_vocabulary_is_refused(items: tuple[str, ...], low: float, high: float, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ProductCatalogue(items=items, low=low, high=high)


@pytest.mark.parametrize("text", ["", "[]", '{"items": "Jaws"}', '{"items": ["Jaws"], "top": 5}'])
def test_an_invalid_text_is_refused_as_a_vocabulary_of_products(text: str) -> None:
    with pytest.raises(DataError, match="not a vocabulary of products"):
        ProductCatalogue.from_json(text)


@pytest.mark.parametrize(
    ("key", "value"),
    [("prior", 1.5), ("prior-weight", 0), ("offset", -0.1), ("slope-noise", 0), ("width", 0), ("arrival", "late")],
)
def test_options_out_of_range_are_refused_by_name(key: str, value: float | str) -> None:
    with pytest.raises(ConfigError, match=f"tasks.ratings.{key}"):
        parse({"method": "fedavg", "task": "ratings", f"tasks.ratings.{key}": value})


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"method": "fedavg"}, "set model=paper"),
        ({"method": "ifca", "model": "paper"}, "needs row-wise averaging, not method ifca; set method=fedavg"),
        ({"method": "fedrule", "model": "paper"}, "needs row-wise averaging, not method fedrule"),
    ],
)
def test_rows_of_named_items_need_the_papers_model_and_a_row_wise_mean(options: dict[str, str], reason: str) -> None:
    named = {"task": "ratings", "tasks.ratings.items": "paper"}
    with pytest.raises(ConfigError, match=reason):
        parse({**named, **options})
    planned = {"method": "bgtplanner", "model": "paper", "privacy.unit": "client"}
    assert parse({**named, **planned}).task_options.pseudo_items == 50
