"""Lengths of updates, and the bound on them."""

import math

import numpy as np
import pytest

from common.contribution import BlockReply, typical
from common.wire.messages import TrainReply
from server.aggregation.lengths import (
    Excess,
    allowances,
    find_excess,
    judge_lengths,
    limit_claims,
    measure,
    references,
    scale_update,
)

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


@pytest.mark.parametrize("clients", [20, 100, 1_000])
@pytest.mark.parametrize("length", [1.0, 3.5, 5.0, 13.0, 40.0, 1e9])
def test_statistics_of_a_liar_with_any_records_leave_the_cosine_of_the_sum(clients: int, length: float) -> None:
    """Honest statistics without common numbers are the worst case: their sum has length √(n − 1)."""
    lengths = {f"client-{k}": {"update": 1.0} for k in range(clients - 1)} | {"liar": {"update": length}}
    weights = {name: 1e9**-2.0 if name == "liar" else 1.0 for name in lengths}
    judged = judge_lengths(lengths, limit_claims(weights, lengths), [], math.inf, 10.0)
    counted = 0.0 if judged.excess else length * judged.clipped.get("liar", {}).get("update", 1.0)
    assert judged.clipped.keys() | judged.excess.keys() <= {"liar"}
    cosine = 1 / math.hypot(1, counted / math.sqrt(clients - 1))
    assert cosine >= (0.9 if clients >= 50 else 0.82)  # of 20, one counts at thrice the typical length in any case


def test_statistics_of_few_clients_grow_with_their_records() -> None:
    lengths = {f"client-{k}": {"update": 1.0} for k in range(6)} | {"large": {"update": 8.0}}
    weights = {name: 10.0**-2 if name == "large" else 1.0 for name in lengths}
    assert judge_lengths(lengths, limit_claims(weights, lengths), [], math.inf, 10.0).clipped == {}


def test_typical_lengths_leave_out_clients_that_learnt_nothing() -> None:
    assert typical([{"update": 0.0}, {"update": 2.0, "gradient": 1.0}, {"update": 4.0}]) == {"update": 3, "gradient": 1}
    assert typical([{"update": 0.0}]) == {}
