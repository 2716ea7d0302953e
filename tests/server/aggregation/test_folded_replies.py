"""Sums over blocks of clients, against single replies."""

from collections.abc import Callable

import numpy as np
import pytest

from common.arrays import Arrays
from common.contribution import BlockReply, ClientBlock, Contribution
from common.errors import ConfigError
from common.tasks.options import Capabilities
from common.wire.messages import TrainReply
from server.aggregation.replies import Reply, add_up, select_whole

STEPS = (3, 3, 1, 1, 2)
RNG = np.random.default_rng(4)
SINGLE = [
    Reply(
        f"client-{k}",
        1.0 + k,
        TrainReply(1, *({"w": RNG.normal(size=(3, 2)).astype(np.float32)} for _ in range(2)), 0.5, 4, steps),
    )
    for k, steps in enumerate(STEPS)
]


def blocks(*, per_step: bool = True) -> list[Reply]:
    """Return the replies with the first two clients in one block, the next two in another, and the last alone."""
    replies = list(SINGLE)
    for number, members in enumerate(((0, 1), (2, 3))):
        sums, trained = Contribution(per_step=per_step, magnitude=True), [SINGLE[k].train for k in members]
        update, gradient = (
            {"w": np.stack([getattr(t, kind)["w"] for t in trained])} for kind in ("update", "gradient")
        )
        sums.add_stack([SINGLE[k].member for k in members], np.array([1.0 + k for k in members]), update, gradient)
        block = ClientBlock(number, tuple(SINGLE[k].client for k in members), sums)
        for k in members:
            lengths = {
                kind: float(np.linalg.norm(getattr(SINGLE[k].train, kind)["w"])) for kind in ("update", "gradient")
            }
            train = BlockReply(1, {}, {}, 0.5, 4, STEPS[k], block=block, lengths=lengths)
            replies[k] = Reply(SINGLE[k].client, SINGLE[k].weight, train)
    return replies


MEANS: dict[str, Callable[[Contribution], Arrays]] = {
    "update": lambda c: c.mean_update(),
    "gradient": lambda c: c.mean_gradient(),
    "direction": lambda c: c.mean_direction(lambda name: 0.1),
    "magnitude": lambda c: c.mean_and_magnitude()[1],
}


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("per_step", [True, False])
def test_means_of_sums_equal_those_of_replies(mean: str, per_step: bool) -> None:
    capabilities = Capabilities(needs_magnitude=True, per_step=per_step)
    single = MEANS[mean](add_up(SINGLE, capabilities))["w"]
    summed = MEANS[mean](add_up(blocks(per_step=per_step), capabilities))["w"]
    assert summed.dtype == np.float32
    np.testing.assert_allclose(summed, single, rtol=1e-6, atol=1e-7)


def test_sums_name_their_clients_and_have_no_single_replies() -> None:
    collected = add_up(blocks(), Capabilities())
    assert (collected.names, [*dict(sorted(collected.steps.items())).values()]) == (
        [r.client for r in SINGLE],
        [*STEPS],
    )
    with pytest.raises(ConfigError, match="single replies"):
        _ = collected.replies


def test_a_block_with_a_client_that_is_left_out_is_left_out_whole() -> None:
    rejected: dict[str, str] = {}
    form = SINGLE[0].train.update, Capabilities(needs_gradient=True, needs_magnitude=True)
    kept = select_whole([reply for reply in blocks() if reply.client != "client-1"], rejected, *form)
    assert [reply.client for reply in kept] == ["client-2", "client-3", "client-4"]
    assert rejected == {"client-0": "its reply is in one sum with that of client-1"}
    assert select_whole(SINGLE[1:], rejected, *form) == SINGLE[1:]
