"""Sessions in closed form: sums, solution, choice, scores, and what a client refuses."""

import numpy as np
import pytest

from client.tasks.sessions.data.visitors import Visitor, as_clicks
from client.tasks.sessions.learner import SessionsLearner
from common.arrays import Arrays, Floats, Ints
from common.config.parse import parse
from common.errors import DataError, WireError
from common.tasks import progress
from common.tasks.sessions import slist
from common.tasks.sessions.vocabulary import Items
from common.wire.sparse_rows import expand
from tests.support.build import learner_of

ITEMS = Items(items=tuple("abcdefgh"))
SESSIONS = [as_clicks(s) for s in ([0, 1, 2], [0, 1, 3, 1], [5, 6], [6, 7, 6], [2, 0], [1, 2, 0, 1], [0, 2])]
VISITORS = (Visitor("ann", tuple(SESSIONS[:4])), Visitor("bob", tuple(SESSIONS[4:])))
STRENGTH = 2.0


def learner(*visitors: Visitor, **options: float | str) -> SessionsLearner:
    chosen = {"method": "ridge", "task": "sessions", "tasks.sessions.test-share": 0.01, **options}
    found: SessionsLearner = learner_of(parse(chosen), ITEMS, visitors or VISITORS)
    return found


def solution(
    *learners: SessionsLearner, strength: float = 0.0, sums: int = 4, noised: bool = False, most: int = 0
) -> Arrays:
    """Return what the sums of all learners give, with one hop if λ is given."""
    solved = slist.sizes(ITEMS, noised)
    solved = {**solved, slist.SIZES: np.array([8, noised, most or solved[slist.SIZES][2]])}
    for _ in range(sums):
        template = slist.template(solved)
        replies = [expand(one.statistics(solved), template) for one in learners]
        total: Arrays = {name: np.stack([r[name] for r in replies]).astype(np.float64).sum(0) for name in template}
        solved = slist.solve(solved, total, strength)
        if strength and slist.CHOICE in solved:
            solved[slist.CHOICE][1] = 0
    return solved


def expected(sessions: list[Ints], strength: float) -> Floats:
    """Return B by its definition."""
    gram: Floats = np.zeros((8, 8))
    follows: Floats = np.zeros((8, 8))
    for clicks in sessions:
        whole = np.isin(np.arange(8), clicks)
        gram += 0.5 * np.outer(whole, whole)
        follows += 0.5 * np.outer(whole, whole)
        for k in range(1, len(clicks)):
            past, future = np.zeros(8), np.zeros(8)
            for item in clicks:
                past[item] = max((np.exp(i + 1 - k) for i in range(k) if clicks[i] == item), default=0)
                future[item] = max((np.exp(k - i) for i in range(k, len(clicks)) if clicks[i] == item), default=0)
            gram += 0.5 * np.outer(past, past)
            follows += 0.5 * np.outer(past, future)
    return np.asarray(np.linalg.solve(gram + strength * np.eye(8), follows), np.float64)


def dense(solved: Arrays) -> Floats:
    """Return B of a solution, without what is not positive."""
    rows, matrix = slist.Rows.of(solved), np.zeros((8, 8))
    for row, item in enumerate(rows.ids):
        span = slice(rows.ends[row], rows.ends[row + 1])
        matrix[item, rows.ids[rows.columns[span]]] = rows.weights[span]
    return matrix


def test_the_solution_is_that_of_the_definition() -> None:
    found = dense(solution(learner(), strength=STRENGTH, sums=4))
    np.testing.assert_allclose(found, np.maximum(expected(SESSIONS, STRENGTH), 0), atol=1e-6)


def test_a_second_hop_adds_what_follows_the_items_that_follow() -> None:
    one_hop = solution(learner(), strength=STRENGTH, sums=2)
    first, second = (dense({**one_hop, **_rows_of(one_hop, number)}) for number in (0, 1))
    shares = first / np.maximum(first.sum(1, keepdims=True), 1e-12)
    np.testing.assert_allclose(second, first + first @ shares, atol=1e-6)


def _rows_of(solved: Arrays, number: int) -> Arrays:
    rows = slist.Rows.of(solved, number)
    return {slist.ENDS: rows.ends[None, 1:], slist.COLUMNS: rows.columns, slist.WEIGHTS: rows.weights}


def test_clients_add_up() -> None:
    one, two = solution(learner(), sums=4), solution(*(learner(visitor) for visitor in VISITORS), sums=4)
    np.testing.assert_allclose(dense(one), dense(two), atol=1e-6)
    assert one[slist.CHOICE].tolist() == two[slist.CHOICE].tolist()
    assert float(one[slist.CHOICE][0]) in slist.STRENGTHS
    assert float(one[slist.CHOICE][1]) in slist.HOPS


def test_hidden_sessions_are_in_the_last_sums_only() -> None:
    hides: dict[str, float] = {"tasks.sessions.blend-share": 0.6}
    second, last = (solution(learner(**hides), strength=STRENGTH, sums=sums) for sums in (2, 4))
    assert np.abs(dense(second) - dense(last)).max() > 0.01
    np.testing.assert_allclose(dense(last), np.maximum(expected(SESSIONS, STRENGTH), 0), atol=1e-6)


def test_items_of_most_visitors_are_chosen() -> None:
    solved = solution(learner(), most=3)
    assert solved[slist.ITEMS].tolist() == [0, 1, 2]
    assert solved[slist.VISITORS].tolist() == [2, 2, 2, 1, 0, 1, 1, 1]


def test_large_vocabularies_are_solved_in_float32_and_compared_by_frequent_items(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slist, "MOST_EXACT", 3)
    compared = solution(learner(), strength=STRENGTH, sums=2)
    assert np.flatnonzero(dense({**compared, **_rows_of(compared, 0)}).any(axis=1)).tolist() == [0, 1, 2]
    last = dense(solution(learner(), strength=STRENGTH, sums=4))
    np.testing.assert_allclose(last, np.maximum(expected(SESSIONS, STRENGTH), 0), atol=1e-5)


def test_a_long_solve_shows_its_progress(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "fedloom.server")
    monkeypatch.setattr(progress, "PROGRESS_SECONDS", 0.0)
    solution(learner(), strength=STRENGTH, sums=2)
    assert "solving items at λ = 2: factorised, 20 %" in caplog.text


def test_the_choice_has_the_largest_gain() -> None:
    solved = solution(learner(), sums=2)
    gains = np.zeros((4, len(slist.READING), len(slist.BLENDS)))
    gains[3, 1, 5] = 1
    chosen = slist.solve(solved, {slist.GAINS: gains.ravel()}, 0.0)
    assert chosen[slist.CHOICE].tolist() == pytest.approx([250, 1, 4, *slist.BLENDS[5]])
    np.testing.assert_array_equal(slist.Rows.of(chosen).weights, slist.Rows.of(solved, 3).weights)


def test_gains_are_those_of_ranks() -> None:
    solved = solution(learner(), sums=2)
    near, far = (np.eye(5, dtype=np.float32)[[4, 2]] * score for score in (1.0, 0.5))
    pair, none = np.array([1, 3]), as_clicks([])
    clicks = [(none, pair, near, 1), (none, pair, far, 3), (none, pair, near, 6)]
    gains = slist.statistics(solved, [], clicks)[slist.GAINS]
    without_recency = gains.reshape(-1, len(slist.BLENDS))[:, 0]
    assert without_recency.tolist() == [2.0] * len(without_recency), "first, without a score, and not among the items"


def test_scores_weigh_the_last_clicks_and_own_clicks() -> None:
    solved = {**solution(learner(), strength=STRENGTH), slist.CHOICE: np.array([2, 0, 4, 0, 0, 0.03], np.float32)}
    matrix, one = dense(solved), learner()
    items, scores = slist.Rows.of(solved).scores(as_clicks([0, 6, 0]))
    weighted = matrix[0] + np.exp(-1 / 4) * matrix[6]
    np.testing.assert_allclose(scores, weighted[items], rtol=1e-5)
    assert (np.delete(weighted, items) == 0).all()
    logits = one.next_items({}, solved, as_clicks([4]), [])
    assert logits.argmax() == 4, "an item outside the solution has its recency"
    assert (np.argsort(logits)[:-1][::-1][:3] < 3).all(), "then items of most visitors"


def test_a_session_and_a_visitor_are_bounded() -> None:
    long = as_clicks([0, 1] * 300)
    many = Visitor("eve", (long,) * 600)
    found = learner(many, **{"tasks.sessions.test-share": 0.001}).statistics(solution(learner(), sums=1))
    assert max(values.max() for name, values in found.items() if name.endswith("values")) <= 5000


def test_a_visitor_has_length_one_under_noise() -> None:
    noise: dict[str, float | str] = {"privacy.unit": "client", "privacy.epsilon": 8.0}
    one = learner(VISITORS[0], **noise)
    start = slist.sizes(ITEMS, True)
    visited = expand(one.statistics(start), slist.template(start))
    assert np.linalg.norm(visited[slist.VISITED]) == pytest.approx(1)
    solved = slist.solve(start, {slist.VISITED: np.ones((8, 1))}, 0.0)
    follows = expand(one.statistics(solved), slist.template(solved))
    assert np.linalg.norm(follows[slist.FOLLOWS]) == pytest.approx(1)
    assert not np.diag(follows[slist.FOLLOWS].reshape(8, 8)).any()


def test_noise_alone_gives_few_pairs() -> None:
    start = slist.sizes(ITEMS, True)
    solved = slist.solve(start, {slist.VISITED: np.full((8, 1), 20.0)}, 0.0)
    pairs = np.random.default_rng(0).normal(0, 1, (8, 8))
    pairs[2, 5] += 30
    rows = dense(slist.solve(solved, {slist.FOLLOWS: pairs.reshape(-1, 1)}, 0.0))
    assert (rows > 0).mean() < 0.2
    assert rows.argmax() == 2 * 8 + 5


def test_visitors_without_sessions_have_nothing_to_solve() -> None:
    with pytest.raises(DataError, match="no visitor of this run has a session"):
        slist.solve(slist.sizes(ITEMS, False), {slist.VISITED: np.zeros((8, 1))}, 0.0)


def test_a_singular_matrix_names_the_option() -> None:
    solved = solution(learner(), sums=1)
    size = len(solved[slist.ITEMS])
    pairs = {slist.GRAM: np.full((size * (size + 1) // 2, 1), -1.0), slist.FOLLOWS: np.zeros((size**2, 1))}
    with pytest.raises(DataError, match=r"algorithm\.ridge\.strength"):
        slist.solve(solved, pairs, 0.5)


@pytest.mark.parametrize(
    "changed",
    [
        {slist.SIZES: np.array([9, 0, 3])},
        {slist.SIZES: np.array([8, 1, 3])},
        {slist.SIZES: np.array([8, 0, 10**6])},
        {slist.ITEMS: np.array([5, 1])},
        {slist.ITEMS: np.array([1, 8])},
        {slist.VISITORS: np.zeros(7)},
        {slist.ENDS: np.zeros((1, 3), np.int64)},
        {slist.COLUMNS: np.zeros(1, np.uint16)},
        {slist.WEIGHTS: np.zeros(1, np.float32)},
        {slist.CHOICE: np.array([1, 0, 0, 0, 0, 0.0])},
    ],
)
def test_sums_of_another_vocabulary_are_refused(changed: Arrays) -> None:
    with pytest.raises(WireError):
        slist.check({**solution(learner()), **changed}, ITEMS, noised=False)
