"""The steps for published sets, each by hand."""

from dataclasses import replace

import numpy as np

from client.tasks.sessions.data.log import TEST, Log, log_of_sessions
from client.tasks.sessions.data.reader import Recipe, active_users, prepare


def log(*sessions: str, users: tuple[str, ...] = (), days: tuple[float, ...] = ()) -> Log:
    """Sessions of one-letter items; with days, each session's time."""
    plain = log_of_sessions([list(session) for session in sessions], 0, np.arange(len(sessions)), users)
    return replace(plain, time=np.array(days)[plain.session] * 86_400.0) if days else plain


def left(prepared: Log, part: int = 0) -> list[str]:
    letters = [(number, prepared.names[item]) for number, item in zip(prepared.session, prepared.item, strict=True)]
    numbers = np.unique(prepared.session[prepared.part == part])
    return ["".join(letter for other, letter in letters if other == number) for number in numbers]


def test_the_most_clicked_items_are_kept() -> None:
    assert left(prepare(log("aab", "bca", "ccd", "cab"), Recipe(top=2))) == ["aa", "ca", "cc", "ca"], "b loses to c"


def test_items_need_clicks_or_where_users_are_known_users() -> None:
    sessions = ("aab", "ab", "ca")
    assert left(prepare(log(*sessions), Recipe(least=3))) == ["aa"]
    assert left(prepare(log(*sessions, users=("ann", "bob", "ann")), Recipe(least=2))) == ["aab", "ab"]
    assert left(prepare(log(*sessions, users=("ann", "ann", "ann")), Recipe(least=2))) == []


def test_long_sessions_are_left_out() -> None:
    assert left(prepare(log("abcd", "abc", "a"), Recipe(longest=3))) == ["abc"]


def test_the_last_days_are_the_test_part() -> None:
    prepared = prepare(log("ab", "ba", "aa", days=(1, 3.5, 4)), Recipe(test_days=1))
    assert (left(prepared), left(prepared, TEST)) == (["ab"], ["ba", "aa"])
    prepared = prepare(log("ab", "ba", "aa", days=(1, 3.5, 4)), Recipe(test_days=1, by_date=True))
    assert (left(prepared), left(prepared, TEST)) == (["ab", "ba"], ["aa"])


def test_the_latest_examples_are_kept_up_to_whole_sessions() -> None:
    """Examples 1, 2, 1, 3: half of 7 is 3.5, reached within the second session from the end."""
    prepared = prepare(log("ab", "abc", "ba", "cabc", days=(1, 4, 3, 2)), Recipe(fraction=2))
    assert left(prepared) == ["abc", "ba", "cabc"]
    assert left(prepare(log("ab", "abc", "ba", "cabc", days=(1, 4, 3, 2)), Recipe(fraction=4))) == ["abc"]


def test_users_with_nothing_left_are_left_out() -> None:
    prepared = active_users(prepare(log("ab", "a", "ba", users=("bob", "ann", "cyd")), Recipe()))
    assert list(prepared.users) == ["bob", "cyd"]
    assert prepared.user.tolist() == [0, 0, 1, 1]
