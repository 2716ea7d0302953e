"""Robust aggregates: values, breakdown points and precision."""

from collections.abc import Callable

import numpy as np
import pytest

from common.arrays import Arrays, Floats, Ints, mean, norm, sub
from common.tasks.closed_form import RowNames
from common.wire.messages import TrainReply
from common.wire.sparse_rows import compress, expand
from server.aggregation import robust
from server.aggregation.replies import Reply
from server.aggregation.robust import (
    ITEM_CLIP,
    attackers,
    coordinate_median,
    geometric_median,
    limit_items,
    multi_krum,
    row_excess,
    trimmed_mean,
)

HONEST = 7


def krum(updates: list[Arrays], malicious: int) -> Arrays:
    chosen = multi_krum(updates, malicious)
    return mean([updates[k] for k in chosen], [1.0] * len(chosen))


RULES: dict[str, Callable[[list[Arrays], int], Arrays]] = {
    "median": lambda updates, malicious: coordinate_median(updates),
    "trimmed-mean": trimmed_mean,
    "multi-krum": krum,
    "geometric-median": lambda updates, malicious: geometric_median(updates),
}


def vectors(*rows: tuple[float, ...]) -> list[Arrays]:
    return [{"w": np.array(row, np.float32)} for row in rows]


def crowd(count: int, seed: int = 0) -> list[Arrays]:
    rng = np.random.default_rng(seed)
    shapes = {"w": (3, 4), "b": (5,)}
    return [{n: rng.normal(1, 0.1, s).astype(np.float32) for n, s in shapes.items()} for _ in range(count)]


def test_the_median_and_the_trimmed_mean_are_per_coordinate() -> None:
    updates = vectors((1, 50), (2, 40), (3, 30), (4, 20), (500, -1000))
    assert coordinate_median(updates)["w"].tolist() == [3, 30]
    assert trimmed_mean(updates, 1)["w"].tolist() == [3, 30]
    assert trimmed_mean(updates, 2)["w"].tolist() == [3, 30]
    assert trimmed_mean(vectors((1, 1), (2, 4), (6, 4), (9, 9)), 1)["w"].tolist() == [4, 4]


def test_multi_krum_keeps_the_updates_with_close_neighbors() -> None:
    assert multi_krum(vectors((1, 0), (1.1, 0), (0.9, 0), (1, 0.1), (-40, 3)), 1) == [0, 1, 2, 3]
    assert len(multi_krum(vectors((1, 0), (2, 0), (3, 0)), 1)) == 3  # n < 2f + 3: nobody can be left out


def test_the_geometric_median_has_the_least_summed_distance() -> None:
    """The Fermat point of an equilateral triangle is its centre, whatever is added at the centre."""
    corners = [(float(np.cos(a)), float(np.sin(a))) for a in (0, 2 * np.pi / 3, 4 * np.pi / 3)]
    np.testing.assert_allclose(geometric_median(vectors(*corners))["w"], 0, atol=1e-6)
    lifted = geometric_median(vectors(*corners, (0, 9)))["w"]
    total = lambda point: sum(np.hypot(*(np.array(c) - point)) for c in (*corners, (0, 9)))  # noqa: E731  # used once
    assert all(total(lifted) <= total(lifted + step) + 1e-6 for step in ([0.01, 0], [0, 0.01], [-0.01, 0], [0, -0.01]))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("lie", [1e30, -100.0, 3e38])
def test_a_minority_of_arbitrary_updates_does_not_move_the_aggregate(rule: str, lie: float) -> None:
    """Two of nine lie; the aggregate stays within the honest spread, where the mean does not."""
    honest = crowd(HONEST)
    lies = [{n: np.full_like(a, lie) for n, a in honest[0].items()} for _ in range(2)]
    middle = mean(honest, [1.0] * HONEST)
    spread = max(norm(sub(u, middle)) for u in honest)
    moved = RULES[rule]([*honest[:3], *lies, *honest[3:]], 2)
    assert norm(sub(moved, middle)) <= spread
    assert moved["w"].dtype == np.float32


@pytest.mark.parametrize("rule", RULES)
def test_equal_updates_are_their_own_aggregate(rule: str) -> None:
    one = crowd(1)[0]
    for name, a in RULES[rule]([one] * 5, 1).items():
        np.testing.assert_allclose(a, one[name], rtol=1e-6)


@pytest.mark.parametrize("rule", RULES)
def test_blocks_do_not_change_the_aggregate(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    updates = crowd(6)
    whole = RULES[rule](updates, 1)
    monkeypatch.setattr(robust, "BLOCK_SIZE", 12)
    for name, a in RULES[rule](updates, 1).items():
        np.testing.assert_allclose(a, whole[name], rtol=1e-6)


def test_empty_updates_have_empty_aggregates() -> None:
    """Methods without shared layers, and methods without a gradient, send none."""
    assert coordinate_median([{}, {}, {}]) == trimmed_mean([{}, {}, {}], 1) == geometric_median([{}, {}, {}]) == {}
    assert multi_krum([{}, {}, {}, {}, {}], 1) == [0, 1, 2, 3]


@pytest.mark.parametrize(("replies", "share", "expected"), [(3, 0.2, 1), (10, 0.2, 2), (10, 0.49, 4), (2, 0.4, 0)])
def test_the_assumed_number_of_attackers(replies: int, share: float, expected: int) -> None:
    assert attackers(replies, share) == expected


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
    whole, most = limit_items([reply(k, one) for k, one in enumerate(sent)], names, {}, 0.2, -1)
    rows, again = limit_items([reply(k, compress(one)) for k, one in enumerate(sent)], names, {}, 0.2, -1)
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
