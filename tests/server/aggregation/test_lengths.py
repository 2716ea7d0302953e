"""Lengths of updates, and the bound on them."""

import math

import numpy as np
import pytest

from common.arrays import Arrays, Floats, Ints
from common.contribution import BlockReply, typical
from common.tasks.closed_form import RowNames
from common.wire.messages import TrainReply
from common.wire.sparse_rows import compress, expand
from server.aggregation.lengths import Excess, allowances, find_excess, measure, references, row_excess, scale_update
from server.aggregation.replies import ITEM_CLIP, Reply, limit_items

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


def pairs_of_clients(liars: int, factor: float = 1.0) -> tuple[list[list[Ints]], list[Floats]]:
    """Return pairs of 20 clients, each with 30 of 60 items, and their masses; liars add one item to all their pairs."""
    rng, members, masses = np.random.default_rng(0), [], []
    for client in range(20):
        mine = rng.permutation(60)[:30]
        members.append([mine, np.where(client < liars, 99, np.roll(mine, 1))])
        masses.append(rng.uniform(0.5, 1.5, 30) * (factor if client == 10 else 1.0))
    return members, masses


@pytest.mark.parametrize("liars", [1, 4])
def test_rows_of_an_item_that_liars_alone_have_are_far_beyond_its_limit(liars: int) -> None:
    excess = row_excess(*pairs_of_clients(liars), 4)
    assert all(one.min() > 10 for one in excess[:liars])
    assert max(one.max() for one in excess[liars:]) < 2.5


def test_a_client_with_much_data_or_with_one_item_is_like_others() -> None:
    members, masses = pairs_of_clients(0, factor=50.0)
    members[3], masses[3] = [np.array([7]), np.array([7])], np.array([1.0])
    assert max(one.max() for one in row_excess(members, masses, 4)) < 2.5
    assert row_excess(members, masses, 4)[3].max() < ITEM_CLIP


def test_rows_without_numbers_do_not_lower_the_limit() -> None:
    members, masses = pairs_of_clients(4)
    before = row_excess(members, masses, 4)[10]
    for client in range(4):
        members[client] = [np.concatenate([one, np.arange(100, 5000)]) for one in members[client]]
        masses[client] = np.concatenate([masses[client], np.full(4900, 1e-9)])
    assert row_excess(members, masses, 4)[10].max() < 1.5 * before.max()


def test_tables_and_their_rows_are_limited_alike_and_numbers_of_clients_stay() -> None:
    def reply(client: int, update: Arrays) -> Reply:
        return Reply(f"c{client}", 1.0, TrainReply(1, update, {}, 0.0, 1, 1))

    rng, sent = np.random.default_rng(1), []
    for client in range(12):
        table = np.zeros((200, 2), np.float32)
        table[rng.permutation(190)[:20]] = 1
        table[195] = (90, 1) if client < 2 else (0, 0)
        sent.append({"counts": table})
    names = {"counts": RowNames(lambda solved: (200,)), "later": RowNames(lambda solved: (1,))}
    whole, most = limit_items([reply(k, one) for k, one in enumerate(sent)], names, {}, 2, -1)
    rows, again = limit_items([reply(k, compress(one)) for k, one in enumerate(sent)], names, {}, 2, -1)
    assert most == again
    share = 90 / 110 * 20
    assert (most["c0"], most["c5"]) == (pytest.approx(share), 1.0)
    for one, other, before in zip(whole, rows, sent, strict=True):
        left, right = (expand(each.update, before)["counts"] for each in (one, other))
        np.testing.assert_array_equal(left, right)
        np.testing.assert_array_equal(left[:, 1], before["counts"][:, 1])
        np.testing.assert_array_equal(left[:190], before["counts"][:190])
    assert expand(whole[0].update, sent[0])["counts"][195, 0] == pytest.approx(90 / share * ITEM_CLIP)
    assert sent[0]["counts"][195, 0] == 90
