"""What is held out."""

import numpy as np
import pytest

from client.tasks.sessions.data.visitors import Case, Visitor, as_clicks, cases_of, split_visitor
from common.tasks.sessions.options import SessionsOptions

TEN = tuple(as_clicks([k, k + 10, k + 20]) for k in range(10))


def first(sessions: tuple[np.ndarray, ...]) -> list[int]:
    return [int(session[0]) for session in sessions]


def test_a_session_is_n_minus_1_cases() -> None:
    found = [(case.prefix.tolist(), case.target) for case in cases_of(as_clicks([4, 2, 4, 7]))]
    assert found == [([4], 2), ([4, 2], 4), ([4, 2, 4], 7)]


def test_shares_are_of_whole_sessions_and_nothing_is_lost() -> None:
    split = split_visitor(Visitor("ann", TEN), SessionsOptions(test_share=0.2, validation_share=0.25), seed=0)
    tested, validated = ([int(case.prefix[0]) for case in cases] for cases in (split.test, split.validation))
    assert (len(split.train), len(tested), len(validated)) == (6, 4, 4), "two sessions of two cases each"
    assert sorted(first(split.train) + tested[::2] + validated[::2]) == list(range(10))
    assert first(split.train) == sorted(first(split.train)), "in their order"


def test_the_split_depends_on_seed_and_name_only_and_tests_not_on_validation() -> None:
    def tested(name: str, seed: int, validation: float = 0.0) -> list[int]:
        options = SessionsOptions(validation_share=validation)
        return [case.target for case in split_visitor(Visitor(name, TEN), options, seed).test]

    assert tested("ann", 1) == tested("ann", 1) == tested("ann", 1, 0.5)
    assert len({tuple(tested(name, seed)) for name in ("ann", "bob", "cyd") for seed in range(3)}) > 3


@pytest.mark.parametrize("sessions", [0, 1, 2, 4])
def test_a_training_session_is_left(sessions: int) -> None:
    options = SessionsOptions(test_share=0.99, validation_share=0.99)
    split = split_visitor(Visitor("ann", TEN[:sessions]), options, seed=0)
    assert len(split.train) == min(1, sessions)


def test_given_cases_are_the_test() -> None:
    case = Case(as_clicks([1]), 2)
    split = split_visitor(Visitor("ann", TEN, (case,)), SessionsOptions(validation_share=0.1), seed=0)
    assert split.test == (case,)
    assert (len(split.train), len(split.validation)) == (9, 2)
