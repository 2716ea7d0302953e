"""Results of a round as strategies see them."""

import numpy as np
import pytest

from common.arrays import mean, sha256
from common.contribution import Contribution
from common.tasks.options import Capabilities
from server.aggregation.replies import Reply, add_up
from server.round.method import RoundContext
from tests.support.strategies import NAMES, VARIANTS, Server, good, reply_of


def replies(*steps: int) -> list[Reply]:
    return [
        Reply(name, weight, reply_of(name, steps=tau))
        for name, weight, tau in zip(NAMES, (1.0, 2.0, 5.0, 1.0), steps, strict=True)
    ]


def total(members: list[Reply], **capabilities: bool) -> Contribution:
    return add_up(members, Capabilities(needs_magnitude=True, **capabilities))


@pytest.mark.parametrize("variant", [name for name, config in VARIANTS.items() if config.capabilities.sum_only])
def test_methods_that_declare_sums_read_no_single_reply(variant: str) -> None:
    server = Server(variant)
    state, capabilities = server.strategy.state, server.config.capabilities
    whole, alone = (add_up(replies(3, 2, 3, 1), capabilities) for _ in range(2))
    alone._singles = None
    at = RoundContext(server.config, state)
    of_replies, of_sums = (server.strategy.method.update(at, state.memory, state.model, c) for c in (whole, alone))
    assert sha256(of_replies[0]) == sha256(of_sums[0])


def test_means_are_of_updates_as_sent_if_a_method_says_so() -> None:
    unequal, weights = replies(3, 2, 3, 1), [1.0, 2.0, 5.0, 1.0]
    whole, as_sent = total(unequal, per_step=False), mean([r.train.update for r in unequal], weights)
    for name, a in whole.mean_update().items():
        np.testing.assert_allclose(a, as_sent[name], rtol=1e-6)
    assert (whole.names, whole.steps) == ([*NAMES], dict(zip(NAMES, (3, 2, 3, 1), strict=True)))


def test_gradients_directions_and_magnitudes_are_weighted_means() -> None:
    whole = total(replies(2, 2, 2, 2))
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
