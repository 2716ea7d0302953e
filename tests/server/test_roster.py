"""Who takes part: names, comings and goings."""

from server.roster import EnrolledClient, Roster


def client(name: str, node: int, examples: int = 3) -> EnrolledClient:
    return EnrolledClient(name, node, f"run:{name}", examples)


def test_strangers_are_those_online_who_have_neither_enrolled_nor_refused() -> None:
    roster = Roster()
    assert roster.strangers([12, 11, 13]) == [11, 12, 13]
    roster.enrol(client("ann", 11))
    roster.refuse(12, "no")
    assert roster.strangers([11, 12, 13]) == [13]


def test_who_refused_and_left_is_asked_again_when_back() -> None:
    roster = Roster()
    roster.refuse(12, "no")
    assert roster.strangers([12]) == []
    assert roster.strangers([]) == []
    assert roster.strangers([12]) == [12]


def test_who_refused_and_stays_is_asked_again_after_a_minute() -> None:
    now = 0.0
    roster = Roster(lambda: now)
    roster.refuse(12, "no")
    now = 59.0
    assert roster.strangers([12]) == []
    now = 60.0
    assert (roster.strangers([12]), roster.refused) == ([12], {12: "no"})
    roster.enrol(client("ann", 12))
    assert (roster.strangers([12]), roster.refused) == ([], {})


def test_whose_name_was_taken_is_asked_again_once_the_holder_has_left() -> None:
    roster = Roster(lambda: 0.0)
    roster.strangers([11, 12])
    roster.enrol(client("ann", 11))
    roster.enrol(client("ann", 12))
    assert roster.strangers([11, 12]) == []
    assert roster.strangers([12]) == [12]
    roster.refuse(12, "another reason")
    assert roster.strangers([12]) == [], "which has nothing to do with the holder"


def test_a_client_that_was_away_is_able_again_without_a_new_invitation() -> None:
    roster = Roster()
    roster.enrol(client("ann", 11))
    assert list(roster.able([11, 12])) == ["ann"]
    assert (roster.strangers([]), roster.able([])) == ([], {})
    assert (roster.strangers([11]), list(roster.able([11]))) == ([], ["ann"])


def test_a_name_belongs_to_the_node_that_came_first() -> None:
    roster = Roster()
    roster.strangers([11, 12])
    roster.enrol(client("ann", 11))
    roster.enrol(client("ann", 12))
    assert roster.able([11, 12])["ann"].node == 11
    assert roster.refused == {12: "another node is already enrolled as 'ann'; give this one its own --name"}


def test_a_name_passes_to_its_successor_once_the_node_has_left() -> None:
    roster = Roster()
    roster.strangers([11])
    roster.enrol(client("ann", 11))
    roster.strangers([12])
    roster.enrol(client("ann", 12))
    assert (roster.able([12])["ann"].node, roster.refused) == (12, {})
    assert roster.strangers([11, 12]) == [11], "the old node, if it ever returns, has to ask"


def test_the_same_node_may_enrol_again() -> None:
    roster = Roster()
    roster.strangers([11])
    roster.enrol(client("ann", 11))
    roster.enrol(client("ann", 11, examples=5))
    assert (roster.able([11])["ann"].examples, roster.refused) == (5, {})


def test_who_has_nothing_to_train_on_is_enrolled_but_not_able() -> None:
    roster = Roster()
    roster.enrol(client("empty", 11, examples=0))
    assert (roster.able([11]), roster.strangers([11])) == ({}, [])


def test_who_is_forgotten_is_a_stranger_again_and_nodes_have_names_for_people() -> None:
    roster = Roster()
    roster.enrol(client("ann", 11))
    assert (roster.name(11), roster.name(99)) == ("ann", "node 99")
    roster.forget(11)
    roster.forget(99)
    assert roster.strangers([11]) == [11]


def test_who_leaves_is_named_and_invited_anew() -> None:
    roster = Roster()
    roster.enrol(client("a", 11))
    assert (roster.leave(11), roster.leave(12)) == ("a", "node 12")
    assert roster.strangers([11]) == [11]
