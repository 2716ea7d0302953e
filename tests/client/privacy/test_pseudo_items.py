"""Rows of own items among pseudo items: the sent rows, their equal noise, and the uncovered channel."""

from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.owner.policy import Policy
from client.privacy.release import draw_items
from client.privacy.simulation import in_memory
from client.session import Session
from client.state import MemoryStore
from client.tasks.ratings.data.generator import demo_raters
from client.tasks.ratings.learner import RatingsLearner
from common.arrays import norm
from common.config.parse import parse, to_json
from common.config.run import RunConfig
from common.models import parameters
from common.options import Scalar
from common.privacy.accounts import gdp_of, sigma_of
from common.privacy.claims import ITEM_IDS, SAME_ITEMS
from common.tasks.ratings.vocabulary import ProductCatalogue, demo_products
from common.wire.messages import EnrolRequest, TrainReply, TrainRequest
from common.wire.sparse_rows import expand_reply
from tests.support.build import learner_of, task_model

PRODUCTS = demo_products()
ITEMS = len(PRODUCTS.items)
[ANN] = demo_raters(0, 1, seed=0)


class Asked:
    """A rater in a run of the paper's model that names items."""

    def __init__(self, seed: int = 0, **options: Scalar) -> None:
        flat = {
            "method": "fedavg",
            "task": "ratings",
            "model": "paper",
            "run-id": "toy",
            "tasks.ratings.items": "paper",
        }
        self.config = parse({**flat, **{key.replace("__", ".").replace("_", "-"): v for key, v in options.items()}})
        draws = count()
        self.releaser = in_memory(Policy(), lambda: np.random.default_rng([seed, next(draws)]))
        self.session = Session("ann", self._learner, MemoryStore(), self.releaser)
        self.model = parameters(task_model(self.config, PRODUCTS))
        self.enrolment = self.session.enrol(EnrolRequest("toy", to_json(self.config), PRODUCTS.to_json())).enrolment
        self.own = self._learner(self.config, PRODUCTS).own_items(1)

    def train(self, number: int = 1, cost: float = 0.0) -> TrainReply:
        return self.session.train(TrainRequest(number, self.enrolment, self.model, cost=cost))

    @staticmethod
    def _learner(config: RunConfig, products: ProductCatalogue) -> RatingsLearner:
        return learner_of(config, products, (ANN,))


def ids_of(reply: TrainReply) -> np.ndarray:
    return reply.update["items@rows"]


@given(st.integers(0, 2**32 - 1), st.sets(st.integers(0, 29)), st.integers(0, 40))
def test_own_items_and_as_many_others_as_there_are(seed: int, rated: set[int], number: int) -> None:
    own = np.array(sorted(rated), np.int64)
    ids = draw_items(own, 30, number, np.random.default_rng(seed))
    assert len(set(ids.tolist())) == len(ids) == min(30, len(own) + number)
    assert rated <= set(ids.tolist()) <= set(range(30))
    assert ids.tolist() == sorted(ids.tolist())


def test_others_are_drawn_evenly() -> None:
    """5,000 draws of 3 among 7: each is in about 3/7 of them, standard deviation .007."""
    rng, own = np.random.default_rng(0), np.array([2, 5, 8])
    seen = np.bincount(np.concatenate([draw_items(own, 10, 3, rng) for _ in range(5000)]), minlength=10) / 5000
    assert seen[own].tolist() == [1, 1, 1]
    assert np.delete(seen, own) == pytest.approx(np.full(7, 3 / 7), abs=0.03)


def test_own_items_are_those_whose_ratings_have_arrived() -> None:
    everything, online = Asked(), Asked(tasks__ratings__arrival="online", rounds=4)
    assert set(online.own.tolist()) < set(everything.own.tolist())
    [split] = Asked._learner(everything.config, PRODUCTS).splits
    assert everything.own.tolist() == sorted(set(split.train.items.tolist()))


def test_without_noise_the_rows_are_those_of_the_whole_update() -> None:
    named, whole = Asked().train(), Asked(tasks__ratings__items="dense", federation__updates="dense").train()
    expanded = expand_reply(named, whole.update)
    for name, array in whole.update.items():
        np.testing.assert_array_equal(expanded.update[name], array)
    assert len(ids_of(named)) == len(Asked().own) + 50


def test_every_round_draws_anew_and_a_retry_sends_what_was_sent() -> None:
    client = Asked(privacy__unit="client")
    cost = gdp_of(10, 1e-5) / 10
    first, again, second = client.train(1, cost), client.train(1, cost), client.train(2, cost)
    for name, array in first.update.items():
        np.testing.assert_array_equal(again.update[name], array)
    assert client.releaser.budget.ledger(client.config.privacy).spent() == pytest.approx(2 * cost)
    both = np.intersect1d(ids_of(first), ids_of(second))
    assert len(ids_of(first)) == len(ids_of(second)) == len(client.own) + 50
    assert set(client.own.tolist()) <= set(both.tolist()) < set(ids_of(first).tolist())


def test_noise_on_own_and_drawn_rows_is_the_same() -> None:
    """One clip of the whole vector, σ = 2C/√(2ρ) on each number: with C small the update drowns in it."""
    client = Asked(privacy__unit="client", privacy__clip=1e-3)
    cost = gdp_of(10, 1e-5) / 100
    sigma, own, others, rest = sigma_of(cost, 2e-3), [], [], []
    for number in range(1, 61):
        reply = client.train(number, cost)
        mine = np.isin(ids_of(reply), client.own)
        own.append(reply.update["items@values"][mine].ravel())
        others.append(reply.update["items@values"][~mine].ravel())
        rest.append(reply.update["weight"].ravel())
    for part in (own, others, rest):
        drawn_noise = np.concatenate(part)
        assert drawn_noise.std() == pytest.approx(sigma, rel=6 / np.sqrt(2 * drawn_noise.size))
        assert abs(drawn_noise.mean()) < 6 * sigma / np.sqrt(drawn_noise.size)


def test_all_that_is_sent_is_clipped_as_one_vector() -> None:
    client = Asked(privacy__unit="client", privacy__clip=1e-3, privacy__epsilon=9e5)
    reply = client.train(1, gdp_of(9e5, 1e-5) / 1.1)
    numbers = {name: array for name, array in reply.update.items() if not name.endswith("@rows")}
    assert norm(numbers) == pytest.approx(1e-3, rel=0.2)


def test_the_ledger_says_what_is_not_covered() -> None:
    client = Asked(privacy__unit="client")
    client.train(1, 0.1)
    claim = client.releaser.budget.ledger(client.config.privacy).claim()
    assert (claim.neighbours, claim.uncovered[0]) == (SAME_ITEMS, ITEM_IDS)
    assert claim.covers.endswith("that name the same items")
    dense = Asked(privacy__unit="client", tasks__ratings__items="dense")
    sent = dense.train(1, 0.1)
    claim = dense.releaser.budget.ledger(dense.config.privacy).claim()
    assert (claim.neighbours, ITEM_IDS in claim.uncovered) == ("replace-one", False)
    assert sent.update["items"].shape[0] == ITEMS
