"""Sums from which the names of several clients are read."""

import json
from statistics import NormalDist

import numpy as np
import pytest

from common.arrays import Array
from common.errors import DataError, WireError
from common.privacy.vectors import RESIDUE_BITS
from common.tasks import names as module
from common.tasks.markets.vocabulary import MarketCatalogue, demo_market_catalogue
from common.tasks.names import BUCKETS, HASHES, LONGEST, SLOTS, SUM, VALUES, NameNoise, NameSum, admissible
from common.tasks.ratings.vocabulary import ProductCatalogue, demo_products
from common.tasks.rules.vocabulary import RuleCatalogue, demo_catalogue
from common.tasks.sessions.vocabulary import demo_items
from common.tasks.traffic.vocabulary import demo_variables
from common.tasks.vocabulary import Vocabulary, entry_text

SHOPS = [
    ["tea", "coffee", "Süßes 食"],
    ["tea", "coffee", "rake"],
    ["tea", "Süßes 食", "saw"],
    ["hoe", "coffee", "Süßes 食"],
]


def total(sums: NameSum, clients: list[list[str]]) -> Array:
    found = np.zeros(sums.shape)
    for names in clients:
        sums.add(found, sums.part(names))
    return found


def found(clients: list[list[str]], least: int, run: str = "a") -> dict[str, int]:
    first = NameSum(run)
    second = first.next(total(first, clients), least)
    if not all(map(len, second.frequent)):
        return {}
    second = NameSum.of_request(run, second.request)
    return second.names(total(second, clients), least)


def test_names_of_enough_clients_are_read_from_the_sums() -> None:
    assert found(SHOPS, 3) == {"tea": 3, "coffee": 3, "Süßes 食": 3}
    assert found(SHOPS, 2) == found(SHOPS, 3)
    assert set(found(SHOPS, 1)) == {name for names in SHOPS for name in names}
    assert found(SHOPS, 4) == {}


def test_a_rare_name_sends_no_bytes() -> None:
    first = NameSum("a")
    second = first.next(total(first, SHOPS), 3)
    assert not len(second.part(["rake", "saw"])[SLOTS])
    assert len(second.part(["tea", "saw"])[SLOTS]) == HASHES


def test_names_that_share_slots_are_told_apart_or_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BUCKETS", 64)
    many = [f"item {k}" for k in range(40)]
    frequent = found([many, many, many, ["lonely"]], 3)
    assert set(frequent) <= set(many)
    assert len(frequent) >= 30, "names in pairs of shared buckets are lost"


def test_a_vector_in_a_secure_sum_is_the_part() -> None:
    first = NameSum("a")
    for sums in (first, first.next(total(first, SHOPS), 3)):
        exact = np.zeros(sums.shape)
        for names in SHOPS:
            exact += sums.pack(sums.part(names))[SUM]
        np.testing.assert_array_equal(exact, total(sums, SHOPS))


def test_the_names_of_a_client_are_bounded() -> None:
    assert len(admissible("a", ["x", "y", "z", "é" * LONGEST, ""], 2)) == 2
    assert admissible("a", ["x", "y", "z"], 2) == admissible("a", ["z", "y", "x"], 2)


@pytest.mark.parametrize(
    "change",
    [
        {SLOTS: np.array([5, 5])},
        {SLOTS: np.array([-1, 5])},
        {SLOTS: np.array([5, HASHES * BUCKETS])},
        {VALUES: np.full((2, 1), 2.0)},
        {VALUES: np.full((2, 1), np.nan)},
        {VALUES: np.ones((2, 2))},
        {"more": np.ones(1)},
    ],
)
def test_a_malformed_part_is_refused(change: dict[str, Array]) -> None:
    sums, part = NameSum("a"), {SLOTS: np.array([5, 6]), VALUES: np.ones((2, 1))}
    sums.add(np.zeros(sums.shape), part)
    with pytest.raises(WireError, match="names: "):
        sums.add(np.zeros(sums.shape), {**part, **change})


NOISE = NameNoise(rho=1.0, epsilon=4.0, delta=1e-5, helpers=2)


def noised_names(clients: list[list[str]], seed: int = 0) -> tuple[NameSum, dict[str, int]]:
    """Return the second sum in a run with noise, and the names in it."""
    rng = np.random.default_rng(seed)
    first = NameSum("a", noise=NOISE)
    counts = sum(first.pack(first.part(names))[SUM] for names in clients) + rng.normal(0, NOISE.spread, first.shape)
    second = NameSum.of_request("a", first.next(counts, 3).request, NOISE)
    opened = np.zeros(second.shape)
    for names in clients:
        opened = (opened + second.pack(second.part(names))[SUM]) % 2.0**RESIDUE_BITS
    return second, second.names(opened, 3)


def test_noised_sums_show_the_names_of_many_clients_and_no_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_NOISED_NAMES", 3)
    clients = [["tea", "Süßes 食", f"only-{k}"] for k in range(200)]
    second, found = noised_names(clients)
    assert set(found) == {"tea", "Süßes 食"}
    assert found["tea"] != 200, "the factor is random, and says nothing of the number of clients"
    assert not second.sent([f"only-{k}" for k in range(200)])


def test_a_name_of_one_client_has_a_negligible_chance() -> None:
    share = NOISE.most_frequent / module.NOISED_BUCKETS
    tail = 1 - NormalDist(0, NOISE.spread).cdf(NOISE.threshold(3) - 3)
    leaked = module.MOST_NOISED_NAMES * (share + tail) ** module.NOISED_HASHES
    assert leaked * (1 + np.exp(NOISE.epsilon)) <= module.FAILURE * NOISE.delta * (1 + 1e-9)
    assert NOISE.most_frequent > 500


def test_more_buckets_than_noise_allows_are_refused() -> None:
    buckets = np.arange(NOISE.most_frequent + 1)
    frequent = {str(k): buckets for k in range(module.NOISED_HASHES)}
    with pytest.raises(WireError, match="buckets of a hash; noise allows"):
        NameSum.of_request("a", frequent, NOISE)


@pytest.mark.parametrize("buckets", [[], [3, 3], [BUCKETS]])
def test_malformed_buckets_are_refused(buckets: list[int]) -> None:
    with pytest.raises(WireError, match="no buckets in ascending order"):
        NameSum.of_request("a", {"0": np.array(buckets, np.int64), "1": np.array([1])})


@pytest.mark.parametrize(
    "vocabulary", [demo_catalogue(), demo_items(), demo_products(), demo_market_catalogue()], ids=lambda v: v.noun()
)
def test_a_vocabulary_is_made_of_its_entries(vocabulary: Vocabulary) -> None:
    texts = sorted(map(entry_text, vocabulary.entries()), reverse=True)
    again = type(vocabulary).from_entries([tuple(json.loads(text)) for text in texts])
    assert sorted(map(entry_text, again.entries())) == texts[::-1]
    assert again == type(vocabulary).from_entries(again.entries())


def test_a_vocabulary_of_more_than_names_has_no_entries() -> None:
    with pytest.raises(DataError, match="field 'step_seconds' lists no names"):
        demo_variables().entries()


def test_entries_make_a_valid_vocabulary() -> None:
    rules = RuleCatalogue.from_entries([("entities", "Light"), ("notices", "Light", "on"), ("does", "Fan", "spin")])
    assert (rules.entities, rules.relations, rules.notices, rules.does) == (("Light",), (), {"Light": ("on",)}, {})
    scales = [("low", 0.0), ("low", -1.0), ("high", 5.0), ("high", 10.0)]
    products = ProductCatalogue.from_entries([("items", "film"), *scales])
    assert (products.low, products.high) == (-1.0, 10.0)
    with pytest.raises(DataError, match="too few clients have the same scale"):
        ProductCatalogue.from_entries([("items", "film"), ("low", 0.0)])
    goods = MarketCatalogue.from_entries([("items", "b"), ("items", "a"), ("titles", "a", "Y"), ("titles", "a", "X")])
    assert (goods.items, goods.titles, goods.descriptions) == (("a", "b"), ("X", ""), ())
