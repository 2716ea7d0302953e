"""Results of a round as strategies see them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest
from server.aggregation.results import Rate, Replies, Reply

from common.arrays import Arrays, mean, sha256
from tests.support.strategies import NAMES, VARIANTS, Server, good, reply_of


@dataclass(frozen=True)
class SumsAlone:
    """Results without single replies."""

    whole: Replies

    @property
    def names(self) -> list[str]:
        return self.whole.names

    @property
    def steps(self) -> Mapping[str, int]:
        return self.whole.steps

    @property
    def replies(self) -> list[Reply]:
        raise AssertionError("a method with sum_only reads single replies")

    def mean_update(self) -> Arrays:
        return self.whole.mean_update()

    def mean_gradient(self) -> Arrays:
        return self.whole.mean_gradient()

    def mean_direction(self, rate: Rate) -> Arrays:
        return self.whole.mean_direction(rate)

    def mean_and_magnitude(self) -> tuple[Arrays, Arrays]:
        return self.whole.mean_and_magnitude()


def replies(*steps: int) -> list[Reply]:
    return [
        Reply(name, weight, reply_of(name, steps=tau))
        for name, weight, tau in zip(NAMES, (1.0, 2.0, 5.0, 1.0), steps, strict=True)
    ]


@pytest.mark.parametrize("variant", [name for name, config in VARIANTS.items() if config.capabilities.sum_only])
def test_methods_that_declare_sums_read_no_single_reply(variant: str) -> None:
    server = Server(variant)
    whole = Replies(replies(3, 2, 3, 1), server.strategy.capabilities.per_step)
    state = server.strategy.state
    of_replies, of_sums = (server.strategy.update(state.memory, state.model, c) for c in (whole, SumsAlone(whole)))
    assert sha256(of_replies[0]) == sha256(of_sums[0])


def test_means_of_updates_per_step_or_as_sent() -> None:
    unequal = replies(3, 2, 3, 1)
    weights, steps = [1.0, 2.0, 5.0, 1.0], [3, 2, 3, 1]
    mean_steps = sum(w * t for w, t in zip(weights, steps, strict=True)) / sum(weights)
    per_step = mean(
        [{n: a / t * mean_steps for n, a in r.train.update.items()} for r, t in zip(unequal, steps, strict=True)],
        weights,
    )
    as_sent = mean([r.train.update for r in unequal], weights)
    for name in as_sent:
        np.testing.assert_allclose(Replies(unequal).mean_update()[name], per_step[name], rtol=1e-5)
        assert (Replies(unequal, per_step=False).mean_update()[name] == as_sent[name]).all()
    assert Replies(unequal).names == [*NAMES]
    assert Replies(unequal).steps == dict(zip(NAMES, steps, strict=True))


def test_gradients_directions_and_magnitudes_are_weighted_means() -> None:
    whole = Replies(replies(2, 2, 2, 2))
    update, gradient = whole.mean_update(), whole.mean_gradient()
    direction = whole.mean_direction(lambda name: 0.5)
    delta, magnitude = whole.mean_and_magnitude()
    for name, a in update.items():
        np.testing.assert_allclose(gradient[name], a / 2, rtol=1e-5)  # replies send half of the update
        np.testing.assert_allclose(direction[name], a, rtol=1e-5)  # rate · steps is 1
        np.testing.assert_allclose(delta[name], a, rtol=1e-5)
        assert (np.abs(delta[name]) <= magnitude[name]).all()


def test_a_step_releases_its_replies_before_the_next_round_arrives() -> None:
    messages = good(*NAMES)
    Server("fedrule").strategy.aggregate_train(1, messages)
    assert not messages
