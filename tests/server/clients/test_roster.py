"""Roster: names, departures and returns."""

from collections import Counter
from typing import NoReturn

import pytest

from server.clients.roster import REINVITE_SECONDS, EnrolledClient, Roster, cohort


def client(name: str, node: int, examples: int = 3) -> EnrolledClient:
    return EnrolledClient(name, node, f"run:{name}", examples)


def test_uninvited_nodes_are_online_and_neither_enrolled_nor_refused() -> None:
    roster = Roster()
    assert roster.select_uninvited([12, 11, 13]) == [11, 12, 13]
    roster.enrol(client("ann", 11))
    roster.refuse(12, "no")
    assert roster.select_uninvited([11, 12, 13]) == [13]


def test_a_node_that_refused_and_left_is_invited_on_return() -> None:
    roster = Roster()
    roster.refuse(12, "no")
    assert roster.select_uninvited([12]) == []
    assert roster.select_uninvited([]) == []
    assert roster.select_uninvited([12]) == [12]


def test_a_node_that_refused_and_stays_is_invited_after_a_minute() -> None:
    now = 0.0
    roster = Roster(lambda: now)
    roster.refuse(12, "no")
    now = 59.0
    assert roster.select_uninvited([12]) == []
    now = 60.0
    assert (roster.select_uninvited([12]), roster.refused) == ([12], {12: "no"})
    roster.enrol(client("ann", 12))
    assert (roster.select_uninvited([12]), roster.refused) == ([], {})


def test_a_node_with_a_taken_name_is_invited_once_the_holder_has_left() -> None:
    roster = Roster(lambda: 0.0)
    roster.select_uninvited([11, 12])
    roster.enrol(client("ann", 11))
    roster.enrol(client("ann", 12))
    assert roster.select_uninvited([11, 12]) == []
    assert roster.select_uninvited([12]) == [12]
    roster.refuse(12, "another reason")
    assert roster.select_uninvited([12]) == [], "its refusal is independent of the holder"


def test_a_client_that_returns_can_train_without_a_new_invitation() -> None:
    roster = Roster()
    roster.enrol(client("ann", 11))
    assert list(roster.select_trainable([11, 12])) == ["ann"]
    assert (roster.select_uninvited([]), roster.select_trainable([])) == ([], {})
    assert (roster.select_uninvited([11]), list(roster.select_trainable([11]))) == ([], ["ann"])


def test_a_name_belongs_to_the_node_that_came_first() -> None:
    roster = Roster()
    roster.select_uninvited([11, 12])
    roster.enrol(client("ann", 11))
    roster.enrol(client("ann", 12))
    assert roster.select_trainable([11, 12])["ann"].node == 11
    assert roster.refused == {12: "another node is enrolled as 'ann'; set a different --name"}


def test_a_name_passes_to_its_successor_once_the_node_has_left() -> None:
    roster = Roster()
    roster.select_uninvited([11])
    roster.enrol(client("ann", 11))
    roster.select_uninvited([12])
    roster.enrol(client("ann", 12))
    assert (roster.select_trainable([12])["ann"].node, roster.refused) == (12, {})
    assert roster.select_uninvited([11, 12]) == [11], "the former node needs a new invitation"


def test_the_same_node_may_enrol_again() -> None:
    roster = Roster()
    roster.select_uninvited([11])
    roster.enrol(client("ann", 11))
    roster.enrol(client("ann", 11, examples=5))
    assert (roster.select_trainable([11])["ann"].examples, roster.refused) == (5, {})


def test_a_client_without_training_data_is_enrolled_but_cannot_train() -> None:
    roster = Roster()
    roster.enrol(client("empty", 11, examples=0))
    assert (roster.select_trainable([11]), roster.select_uninvited([11])) == ({}, [])


def test_a_removed_client_is_uninvited_and_nodes_have_display_names() -> None:
    roster = Roster()
    roster.enrol(client("ann", 11))
    assert (roster.name(11), roster.name(99)) == ("ann", "node-99")
    roster.forget(11)
    roster.forget(99)
    assert roster.select_uninvited([11]) == [11]


def test_a_client_that_leaves_is_named_and_invited_again() -> None:
    roster = Roster()
    roster.enrol(client("a", 11))
    assert (roster.leave(11), roster.leave(12)) == ("a", "node-12")
    assert roster.select_uninvited([11]) == [11]


def test_a_paused_client_is_not_enrolled_anew_each_round() -> None:
    now = [0.0]
    roster = Roster(lambda: now[0])
    for node, name in ((1, "ann"), (2, "bob")):
        roster.enrol(EnrolledClient(name, node, "toy:0", 3))
    assert roster.leave(1, "paused by its owner") == "ann"
    assert roster.leave(2, "update: non-finite numbers") == "bob"
    assert roster.select_uninvited([1, 2]) == [2]
    assert roster.refused == {1: "paused by its owner"}
    now[0] = REINVITE_SECONDS
    assert roster.select_uninvited([1, 2]) == [1, 2]


class Unsearched(dict[int, EnrolledClient]):
    """Clients that are looked up by node only."""

    def values(self) -> NoReturn:
        raise AssertionError("an enrolment must not search all clients")


def test_an_enrolment_costs_the_same_for_any_number_of_clients() -> None:
    roster = Roster(clients=Unsearched())
    roster.select_uninvited([1, 2, 3])
    for node, name in ((1, "a"), (2, "b"), (1, "c"), (3, "a")):
        roster.enrol(client(name, node))
    assert {node: enrolled.name for node, enrolled in roster.clients.items()} == {1: "c", 2: "b", 3: "a"}


NAMES = [f"client-{k}" for k in range(10)]


def test_the_order_of_names_does_not_matter() -> None:
    assert cohort(1, 3, NAMES, 0.4, 1) == cohort(1, 3, NAMES[::-1], 0.4, 1)
    assert cohort(1, 3, dict.fromkeys(reversed(NAMES)), 0.4, 1) == cohort(1, 3, set(NAMES), 0.4, 1)


def test_seed_round_and_names_each_matter() -> None:
    draws = {tuple(cohort(seed, number, NAMES, 0.4, 1)) for seed in range(3) for number in range(4)}
    assert len(draws) > 8
    assert cohort(0, 1, NAMES, 0.4, 1) != cohort(0, 1, [f"other-{k}" for k in range(10)], 0.4, 1)


@pytest.mark.parametrize(
    ("share", "at_least", "size"), [(1.0, 1, 10), (0.4, 1, 4), (0.41, 1, 5), (0.01, 1, 1), (0.1, 3, 3), (0.5, 99, 10)]
)
def test_the_size_is_the_share_rounded_up_but_at_least_the_quorum_and_at_most_all(
    share: float, at_least: int, size: int
) -> None:
    chosen = cohort(0, 1, NAMES, share, at_least)
    assert len(chosen) == len(set(chosen)) == size
    assert chosen == sorted(chosen)
    assert set(chosen) <= set(NAMES)


def test_without_clients_the_cohort_is_empty() -> None:
    assert cohort(0, 1, [], 0.5, 2) == []


def test_clients_are_drawn_about_equally_often() -> None:
    drawn = Counter(name for number in range(2000) for name in cohort(0, number, NAMES, 0.3, 1))
    assert all(abs(drawn[name] - 600) < 5 * (2000 * 0.3 * 0.7) ** 0.5 for name in NAMES), "within 5 standard deviations"
