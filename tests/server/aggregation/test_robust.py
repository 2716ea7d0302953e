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
    item_excess,
    limit_items,
    multi_krum,
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


def sums_of(liars: int, factor: float = 1.0) -> dict[str, tuple[Ints, Floats]]:
    """Return the masses of 30 of 60 items for each of 20 clients; those of liars are half of one further item."""
    rng, sums = np.random.default_rng(0), {}
    for client in range(20):
        items, masses = np.sort(rng.permutation(60)[:30]), rng.uniform(0.5, 1.5, 30) * (factor if client == 10 else 1)
        if client < liars:
            items, masses = np.append(items, 99), np.append(masses, masses.sum())
        sums[f"c{client}"] = items, masses
    return sums


@pytest.mark.parametrize("liars", [1, 4])
def test_an_item_that_liars_alone_have_is_far_beyond_its_limit(liars: int) -> None:
    most = [factors.max() for _, factors in item_excess(sums_of(liars), 4).values()]
    assert min(most[:liars]) > 10
    assert max(most[liars:]) < 2.5


def test_a_client_with_much_data_or_with_one_item_is_like_others() -> None:
    sums = sums_of(0, factor=50.0)
    sums["c3"] = np.array([7]), np.array([1.0])
    excess = item_excess(sums, 4)
    assert max(factors.max() for _, factors in excess.values()) < 2.5
    assert excess["c3"][1].max() < ITEM_CLIP


def test_many_small_numbers_of_liars_do_not_lower_the_limit_of_others() -> None:
    sums = sums_of(0)
    before = item_excess(sums, 4)["c10"][1]
    for client in range(4):
        items, masses = sums[f"c{client}"]
        sums[f"c{client}"] = np.append(items, np.arange(100, 5000)), np.append(masses, np.full(4900, 1e-9))
    assert item_excess(sums, 4)["c10"][1].max() < 1.5 * before.max()


def test_tables_rows_and_stored_replies_are_limited_alike_and_numbers_of_clients_stay() -> None:
    def reply(client: int, update: Arrays, *, is_stored: bool = False) -> Reply:
        held, stored = ({}, {"update": lambda: update, "gradient": dict}) if is_stored else (update, None)
        return Reply(f"c{client}", 1.0, TrainReply(1, held, {}, 0.0, 1, 1), stored=stored)

    rng, sent = np.random.default_rng(1), []
    for client in range(12):
        table = np.zeros((200, 2), np.float32)
        table[rng.permutation(190)[:20]] = 1
        table[195] = (90, 1) if client < 2 else (0, 0)
        sent.append({"counts": table, "number": np.full(1, client, np.float32)})
    names = {
        "counts": RowNames(lambda solved: (200,)),
        **dict.fromkeys(("number", "later"), RowNames(lambda solved: (1,))),
    }
    rows = [compress(one) for one in sent]
    forms = [reply(k, one) for k, one in enumerate(sent)], [reply(k, one) for k, one in enumerate(rows)]
    forms = *forms, [reply(k, one, is_stored=True) for k, one in enumerate(rows)]
    share = 90 / 110 * 20
    for form in forms:
        limited, most = limit_items(form, names, {}, 0.2, -1)
        assert (most["c0"], most["c5"]) == (pytest.approx(share), 1.0)
        for one, before in zip(limited, sent, strict=True):
            found = expand(one.update, before)["counts"]
            assert one.update["number"] == before["number"]
            np.testing.assert_array_equal(found[:, 1], before["counts"][:, 1])
            np.testing.assert_array_equal(found[:190], before["counts"][:190])
        assert expand(limited[0].update, sent[0])["counts"][195, 0] == pytest.approx(90 / share * ITEM_CLIP)
    assert sent[0]["counts"][195, 0] == 90


def test_a_pair_counts_by_the_item_with_the_larger_excess() -> None:
    names = RowNames(lambda solved: (60,), chosen="items", pairs="ordered")
    solved, replies, rng = {"items": np.arange(60)}, [], np.random.default_rng(2)
    for client in range(20):
        pairs = rng.permutation(50)[:20] * 60 + rng.permutation(50)[:20]
        ids = np.unique(np.append(pairs, 55 * 60 + rng.permutation(50)[:20] if client < 2 else []).astype(np.int32))
        update = {"pairs@rows": ids, "pairs@values": np.ones((len(ids), 1), np.float32)}
        replies.append(Reply(f"c{client}", 1.0, TrainReply(1, update, {}, 0.0, 1, 1)))
    limited, most = limit_items(replies, {"pairs": names}, solved, 0.2, None)
    values, ids = limited[0].update["pairs@values"].ravel(), limited[0].update["pairs@rows"]
    assert most["c0"] > 5 > max(most[f"c{client}"] for client in range(2, 20))
    np.testing.assert_allclose(values[ids // 60 == 55], ITEM_CLIP / most["c0"], rtol=1e-5)
    assert values[ids // 60 != 55].min() > ITEM_CLIP / 5
