"""Lengths of updates, and the bound on them."""

import math

import numpy as np
import pytest

from common.contribution import BlockReply, typical
from common.wire.messages import TrainReply
from server.aggregation.lengths import Excess, allowances, find_excess, measure, references, scale_update

Lengths = dict[str, float]


def updates(*lengths: float) -> list[Lengths]:
    return [{"update": length} for length in lengths]


def test_a_length_is_scaled_to_the_steps_of_the_round() -> None:
    """‖(3, 4)‖ = 5 over one of three steps counts 15; gradients are means, whatever the steps."""
    vector = {"w": np.array([3.0, 4.0], np.float32)}
    of_block = BlockReply(1, {}, {}, 0.0, 1, 1, lengths={"update": 5.0, "gradient": 5.0})
    for reply in (TrainReply(1, vector, vector, 0.0, 1, 1), of_block):
        assert scale_update(measure(reply), 3.0) == {"update": 15.0, "gradient": 5.0}
    assert measure(TrainReply(1, vector, {}, 0.0, 1, 1)) == {"update": 5.0}


@pytest.mark.parametrize(
    ("now", "past", "expected"),
    [
        ((1, 2, 3, 4, 1e30), (50,), 3),  # five replies judge each other
        ((0, 2, 3, 4, 5, 6), (), 4),  # clients that learnt nothing do not count
        ((1, 2, 3, 1e30), (), 2),  # the lower median
        ((1, 2, 3, 1e30), (2, 5), 5),
        ((8, 9, 10), (1,), 9),  # all grew together
        ((1, 1e30), (3,), 3),
        ((8, 9), (1,), 8),
        ((1, 1e30), (), 70),  # two cannot judge each other
        ((1e30,), (3, 4), 4),
        ((1e30,), (), 70),
    ],
)
def test_the_reference_is_the_median_of_the_round_or_of_the_last_rounds(
    now: tuple[float, ...], past: tuple[float, ...], expected: float
) -> None:
    assert references(updates(*now), updates(*past), first=70) == {"update": expected}


def test_a_length_beyond_the_bound_is_named_with_its_figure() -> None:
    lengths = {"ann": {"update": 20.0}, "liar": {"update": 20.1}, "bob": {"update": 1.0, "gradient": math.inf}}
    found = find_excess(lengths, {"update": 2.0, "gradient": 1.0}, 10, dict.fromkeys(lengths, 1.0))
    assert found == {
        "liar": Excess(
            "update of norm 20.1, 10.1 times the typical 2; federation.norm-bound is 10", {"update": 2 / 20.1}
        ),
        "bob": Excess("gradient of norm inf, inf times the typical 1; federation.norm-bound is 10", {"gradient": 0.0}),
    }


def test_a_reply_of_less_weight_may_be_longer_but_moves_the_mean_no_further() -> None:
    """Weights 1, 4, 16, 16, 100: the median is 16, so factors are √16, √4 and, for all others, 1."""
    weights = {"few": 1.0, "some": 4.0, "ann": 16.0, "bob": 16.0, "many": 100.0}
    factors = allowances(weights)
    assert factors == {"few": 4.0, "some": 2.0, "ann": 1.0, "bob": 1.0, "many": 1.0}
    assert all(weights[name] * factors[name] <= 16 for name in ("few", "some", "ann", "bob"))
    lengths = {name: {"update": 79.0} for name in weights}
    found = find_excess(lengths, {"update": 2.0}, 10, factors)
    assert list(found) == ["some", "ann", "bob", "many"]
    assert found["some"].reason.startswith("update of norm 79, 19.8 times the typical 4;")
    assert allowances({}) == {}


def test_typical_lengths_leave_out_clients_that_learnt_nothing() -> None:
    assert typical([{"update": 0.0}, {"update": 2.0, "gradient": 1.0}, {"update": 4.0}]) == {"update": 3, "gradient": 1}
    assert typical([{"update": 0.0}]) == {}
