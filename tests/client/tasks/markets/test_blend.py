"""Markets in closed form: sums, solution, own counts taken out, scores, and what a client refuses."""

from pathlib import Path

import numpy as np
import pytest

from client.tasks.markets.baseline import EASE_STRENGTH, PRIOR_WEIGHT, Ease
from client.tasks.markets.data.graph import symmetric
from client.tasks.markets.data.markets import Markets
from client.tasks.markets.inference import companions
from client.tasks.markets.learner import MarketsLearner
from common.arrays import Arrays
from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import DataError, WireError
from common.tasks.markets import blend
from common.tasks.markets.pairs import DEGREES, KEYS, VALUES, add_pairs
from common.tasks.markets.task import TASK
from common.wire.sparse_rows import expand
from deploy.simulation.grid import simulate
from server.record.folder import RunDirectory
from tests.support.closed_form import solve
from tests.support.markets import DEMO

GOODS = DEMO.vocabulary


def configured(**options: str) -> RunConfig:
    return parse({"task": "markets", "method": "ridge", "run-id": "toy", "federation.min-clients": 1, **options})


def learners() -> list[MarketsLearner]:
    """Return one learner for each market."""
    run = configured().task_run(TASK, GOODS)
    return [MarketsLearner(run, Markets((market,), GOODS)) for market in DEMO.units]


def solution(clients: list[MarketsLearner], sums: int = 7) -> Arrays:
    """Return what the first sums of all markets give."""
    return solve(TASK, blend.sizes(GOODS, False), clients, sums)


def test_the_second_sum_is_that_of_all_counts() -> None:
    clients = learners()
    solved, total = solution(clients, 2), add_pairs([client.counts() for client in clients])
    for name in (KEYS, VALUES, DEGREES):
        np.testing.assert_array_equal(solved[name], total[name])
    assert not blend.is_solved(solved)


def test_a_market_takes_its_counts_out_of_the_sum() -> None:
    first, *others = clients = learners()
    left = first._others(solution(clients, 2))
    np.testing.assert_array_equal(left[KEYS], add_pairs([client.counts() for client in others])[KEYS])


def test_clients_choose_weights_for_queries_with_and_without_pairs() -> None:
    solved = solution(learners())
    choices = blend.choices(solved).astype(np.float32)
    warm, cold = solved[blend.WEIGHTS][: blend.FIRST_COLD], solved[blend.WEIGHTS][blend.FIRST_COLD :]
    assert any(np.array_equal(warm, choice[: blend.FIRST_COLD]) for choice in choices)
    assert any(np.array_equal(cold, choice[blend.FIRST_COLD :]) for choice in choices)
    assert int(solved[blend.STEPS].item()) == blend.NEWTON_STEPS


def test_ease_is_the_regression_of_rows_of_norm_one() -> None:
    edges, n = np.array([[0, 1], [0, 2], [1, 2], [2, 3]]), 4
    own = symmetric(edges, np.array([3.0, 1, 2, 1], np.float32), n)
    others = symmetric(edges[:2], np.array([5.0, 2], np.float32), n)

    def unit(matrix: np.ndarray) -> np.ndarray:
        logs = np.log1p(matrix)
        rows: np.ndarray = logs / np.maximum(np.linalg.norm(logs, axis=1, keepdims=True), 1e-12)
        return rows

    G, others_rows = unit(own.toarray()), unit(others.toarray())
    P = np.linalg.inv(G.T @ G + PRIOR_WEIGHT * others_rows.T @ others_rows + EASE_STRENGTH * np.eye(n))
    B = -P / np.diag(P)
    np.fill_diagonal(B, 0)
    np.testing.assert_allclose(Ease.of(own, others).scores(own), G @ B, atol=1e-5)


def test_a_run_solves_and_recommends(tmp_path: Path) -> None:
    (tmp_path / "goods.json").write_text(GOODS.to_json(), "utf-8")
    config = configured(catalogue=str(tmp_path / "goods.json"))
    result = simulate(config, DEMO, tmp_path)
    assert (result.status, result.rounds_done) == ("completed", 7)
    assert result.metrics["ndcg20"] > 0.9 * result.metrics["walk_ndcg20"]
    checkpoint = RunDirectory(tmp_path, "toy").checkpoints.load_latest()
    assert checkpoint is not None
    solved, market = checkpoint.groups["statics"], DEMO.units[0]
    item = int(market.ratings[0, 1]) if len(market.ratings) else int(market.pairs[0, 0])
    assert len(companions(config, GOODS, solved, market, item, 5)) == 5


def test_under_noise_a_market_has_norm_one() -> None:
    solved = blend.sizes(GOODS, True)
    sent = expand(blend.popular(learners()[0].counts()[DEGREES]), blend.template(solved))
    assert np.linalg.norm(sent[blend.POPULAR]) == pytest.approx(1)
    assert blend.is_solved(blend.solve(solved, {blend.POPULAR: sent[blend.POPULAR]}, 0.0))


def test_markets_without_pairs_have_nothing_to_solve() -> None:
    with pytest.raises(DataError, match="no market of this run has a pair"):
        blend.solve(blend.sizes(GOODS, False), {blend.USED: np.zeros((len(GOODS.items), 1))}, 0.0)


@pytest.mark.parametrize(
    "changed",
    [
        {blend.SIZES: np.array([3, 0, blend.MOST_ITEMS])},
        {blend.ITEMS: np.array([5, 1])},
        {blend.ITEMS: np.array([-1])},
        {KEYS: np.array([7])},
        {blend.CANDIDATES: np.zeros((2, 3))},
    ],
)
def test_sums_of_another_vocabulary_are_refused(changed: Arrays) -> None:
    with pytest.raises(WireError):
        blend.check({**blend.sizes(GOODS, False), **changed}, GOODS, noised=False)
