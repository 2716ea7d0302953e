"""Alignment of clients with the others: who is set aside in a round, who is named after some, and votes."""

from functools import partial

import numpy as np
import pytest

from common.arrays import Arrays
from server.aggregation.alignment import (
    LEVEL,
    MIN_BUCKETS,
    ROOM,
    SUSPICION,
    Alignment,
    cosines,
    directions,
    find_coalition,
    find_opposed,
    has_majority,
    outliers,
)
from server.aggregation.lengths import CLIP, ReplyMemory, judge_lengths

CLIENTS = [f"c{k:02}" for k in range(20)]


def updates(seed: int, liars: int, agreement: float = 0.5, size: int = 400) -> dict[str, Arrays]:
    """Return updates with a common part, which the first ones send with the other sign."""
    rng = np.random.default_rng(seed)
    common = np.random.default_rng(99).standard_normal(size)
    sent = {client: agreement * common + rng.standard_normal(size) for client in CLIENTS}
    return {c: {"w": -u if k < liars else u} for k, (c, u) in enumerate(sent.items())}


def measured(sent: dict[str, Arrays]) -> dict[str, float]:
    names, rows = directions({client: partial(dict, update) for client, update in sent.items()})
    return cosines(names, rows, find_coalition(rows))


def test_alignment_is_the_cosine_with_the_sum_of_the_other_directions() -> None:
    sent = updates(0, 0)
    rows = {client: update["w"] / np.linalg.norm(update["w"]) for client, update in sent.items()}
    rest = sum(row for client, row in rows.items() if client != "c03")
    assert measured(sent)["c03"] == pytest.approx(rows["c03"] @ rest / np.linalg.norm(rest), abs=1e-5)


def test_cosines_of_long_updates_are_almost_those_of_all_their_numbers() -> None:
    size = 3 * max(ROOM // len(CLIENTS), MIN_BUCKETS) + 7
    sent = updates(0, 0, size=size)
    whole = np.array([u["w"] / np.linalg.norm(u["w"]) for u in sent.values()], np.float32)
    exact, folded = cosines(CLIENTS, whole, find_coalition(whole)), measured(sent)
    assert max(abs(exact[client] - folded[client]) for client in CLIENTS) < 5 / np.sqrt(size / 3)


@pytest.mark.parametrize("liars", [1, 4, 6])
def test_liars_are_suspects_at_once_and_named_after_some_rounds(liars: int) -> None:
    memory = ReplyMemory()
    for number in range(3):
        found = measured(updates(number, liars))
        assert outliers(found, SUSPICION) == {*CLIENTS[:liars]}
        memory = memory.align("update", found)
    assert find_opposed(memory.alignment["update"], CLIENTS).keys() == {*CLIENTS[:liars]}


def test_honest_clients_are_named_less_often_than_the_level_says_also_where_updates_cancel_out() -> None:
    named = 0
    for run in range(60):
        memory, away = ReplyMemory(), np.random.default_rng(run).standard_normal((len(CLIENTS), 50))
        away -= away.mean(axis=0)  # a model that has converged, with clients that would pull it apart
        for number in range(5):
            noise = np.random.default_rng([run, number]).standard_normal(away.shape)
            memory = memory.align("update", measured(dict(zip(CLIENTS, ({"w": a} for a in away + noise), strict=True))))
        named += bool(find_opposed(memory.alignment["update"], CLIENTS))
    assert named <= 60 * LEVEL + 2


def test_who_was_opposed_in_earlier_rounds_is_named_only_when_it_answers() -> None:
    few = {client: Alignment(4, 1.2, 0.0, 0.01) for client in CLIENTS[1:]}
    memory = {**few, CLIENTS[0]: Alignment(4, -1.2, -2.4, 1.45)}
    assert find_opposed(memory, CLIENTS[1:]) == {}
    assert find_opposed(memory, CLIENTS).keys() == {CLIENTS[0]}


def test_a_long_update_counts_at_a_multiple_of_the_median_in_a_round_of_five() -> None:
    lengths = {client: {"update": float(length)} for client, length in zip("abcde", (1, 1, 1, 1, 5), strict=True)}
    weights = dict.fromkeys(lengths, 1.0)
    judged = judge_lengths(lengths, weights, [], 1.0, 10.0)
    assert (judged.excess, judged.clipped) == ({}, {"e": {"update": CLIP / 5}})
    few = {client: lengths[client] for client in "cde"}
    assert judge_lengths(few, weights, [], 1.0, 10.0).clipped == {}


@pytest.mark.parametrize(("against", "votes", "wins"), [(12, 15, True), (9, 15, False), (4, 4, False), (5, 5, True)])
def test_most_votes_decide_on_a_round_and_more_of_them_on_a_name(against: int, votes: int, *, wins: bool) -> None:
    assert has_majority(against, votes) is wins
    assert not has_majority(against, votes, LEVEL / 2), "one round names nobody by so few votes"


def test_clients_that_send_no_update_have_no_alignment() -> None:
    names, rows = directions(dict.fromkeys("abcdefghijkl", dict))
    assert (names, cosines(names, rows, find_coalition(rows))) == ([], {})


def coalition(sent: dict[str, Arrays]) -> set[str]:
    names, rows = directions({client: partial(dict, update) for client, update in sent.items()})
    return {names[k] for k in np.flatnonzero(find_coalition(rows))}


@pytest.mark.parametrize("liars", [2, 4, 6])
def test_clients_that_send_one_vector_are_a_coalition_and_judged_by_the_others(liars: int) -> None:
    sent = updates(3, 0)
    honest = [sent[client]["w"] for client in CLIENTS[:liars]]
    together = np.mean(honest, axis=0) - 1.5 * np.std(honest, axis=0)
    sent |= {client: {"w": together} for client in CLIENTS[:liars]}
    assert coalition(sent) == {*CLIENTS[:liars]}
    found = measured(sent)
    assert min(found[client] for client in CLIENTS[liars:]) > 0.3, "liars are not in the sum of the others"


def test_clients_that_add_one_direction_are_a_coalition_though_all_agree() -> None:
    sent, rng = updates(0, 0, agreement=2.0), np.random.default_rng(7)
    extra = rng.standard_normal(400)
    for client in CLIENTS[:4]:
        sent[client] = {"w": sent[client]["w"] + extra}
    assert coalition(sent) == {*CLIENTS[:4]}


def test_honest_clients_are_no_coalition_also_where_many_agree() -> None:
    for seed in range(200):
        assert coalition(updates(seed, 0, agreement=(0.0, 0.5, 5.0)[seed % 3])) == set()
    assert coalition(dict.fromkeys(CLIENTS, updates(0, 0)["c00"])) == set(), "equal data"
    few = {client: updates(0, 0)["c00"] for client in CLIENTS[:9]}
    assert coalition(few) == set()


@pytest.mark.parametrize(("together", "common", "found"), [(2, 0.7, 0), (2, 0.8, 2), (3, 0.65, 3)])
def test_two_clients_have_to_be_more_alike_than_three(together: int, common: float, found: int) -> None:
    rng = np.random.default_rng(0)
    rows, shared = rng.standard_normal((20, 400)), rng.standard_normal(400)
    rows[:together] += common * shared
    assert np.flatnonzero(find_coalition((rows / 20).astype(np.float32))).tolist() == [*range(found)]


def test_few_clients_with_one_vector_share_data_and_are_no_coalition() -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((60, 200)).astype(np.float32)
    rows[:2] = rows[0]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    assert not find_coalition(rows).any()
    assert np.flatnonzero(find_coalition(rows[:40])).tolist() == [0, 1]
