"""Counts that leave a market with noise of their own: paid once, the same bytes again, and gone from what is learnt of."""

import numpy as np
import pytest

from client.data.read import read_all
from client.owner.policy import Policy
from client.privacy.simulation import in_memory
from client.session import Session
from client.state import MemoryStore
from client.tasks.markets.learner import MarketsLearner
from common.arrays import Arrays
from common.config.parse import parse, to_json
from common.config.run import RunConfig
from common.errors import RefusedError
from common.models import parameters
from common.options import Scalar
from common.privacy.accounts import gdp_of, rho_of, sigma_of
from common.privacy.mechanisms import build_account
from common.tasks.markets.counts import KEYS, VALUES, no_counts
from common.tasks.markets.vocabulary import MarketCatalogue
from common.tasks.vocabulary import Vocabulary
from common.wire.messages import CountsRequest, EnrolRequest, EvaluateRequest
from tests.support.build import learner_of, task_model

DEMO = read_all("markets", "demo:2-4")
EPSILON = 8.0


def configured(**options: Scalar) -> RunConfig:
    asked = {"count-offset": True, "count-epsilon": EPSILON, "width": 4, **options}
    flat = {f"tasks.markets.{key.replace('_', '-')}": value for key, value in asked.items()}
    return parse({"method": "fedavg", "task": "markets", "run-id": "toy", **flat})


class Asked:
    """A client with two markets under a server that asks for counts."""

    def __init__(self, config: RunConfig, policy: Policy | None = None) -> None:
        draws = iter(range(100))
        self.noises: list[float] = []
        self.releaser = in_memory(policy or Policy(), lambda: np.random.default_rng(next(draws)))
        self.session = Session("ann", self._learner, MemoryStore(), self.releaser)
        self.config = config
        invitation = EnrolRequest("toy", to_json(config), DEMO.vocabulary.to_json())
        self.request = CountsRequest(self.session.enrol(invitation).enrolment)

    def _learner(self, config: RunConfig, names: Vocabulary) -> MarketsLearner:
        assert isinstance(names, MarketCatalogue)
        learner = learner_of(config, names, DEMO.units)
        draw = learner.private_counts

        def noted(noise: float, rng: np.random.Generator) -> dict[str, np.ndarray]:
            self.noises.append(noise)
            return draw(noise, rng)

        learner.private_counts = noted  # type: ignore[method-assign]
        return learner

    @property
    def spent(self) -> float:
        return self.releaser.budget.ledger(self.config.task_options.count_privacy).spent()


def test_noise_is_that_of_the_budget_and_the_whole_budget_is_charged() -> None:
    client = Asked(configured())
    client.session.counts(client.request)
    [noise] = client.noises
    best = rho_of(EPSILON, 1e-5)  # ρ of the best order by the account's own conversion
    assert noise == pytest.approx(sigma_of(best, 1.0), rel=0.02), "a whole order costs a little more"
    assert noise >= sigma_of(gdp_of(EPSILON, 1e-5), 1.0)
    account = build_account(client.config.task_options.count_privacy)
    assert client.spent == pytest.approx(account.total(EPSILON, 1e-5))
    assert client.spent <= account.total(EPSILON, 1e-5)
    ledger = client.releaser.budget.ledger(client.config.task_options.count_privacy)
    assert [row.slot.kind for row in ledger.entries()] == ["counts"]


def test_a_repeated_request_gets_the_same_bytes_and_costs_nothing() -> None:
    client = Asked(configured())
    first, spent = client.session.counts(client.request).counts, client.spent
    again = client.session.counts(client.request).counts
    assert all((first[name] == again[name]).all() for name in first)
    assert (len(client.noises), client.spent) == (1, spent)


def test_another_run_finds_the_budget_of_the_data_spent() -> None:
    client = Asked(configured(), Policy(max_epsilon=EPSILON, require_noise=False))
    client.session.counts(client.request)
    other = client.session.enrol(EnrolRequest("other", to_json(configured()), DEMO.vocabulary.to_json()))
    with pytest.raises(RefusedError, match="exceeds the remaining budget"):
        client.session.counts(CountsRequest(other.enrolment))


def test_what_it_sent_is_no_news_to_itself() -> None:
    """A sum of its own counts alone is nothing of other markets: metrics and lines are those of an empty sum."""
    client = Asked(configured(count_epsilon=1e4, protocol="cold"))
    counts, model = (
        client.session.counts(client.request).counts,
        parameters(task_model(client.config, DEMO.vocabulary)),
    )
    assert len(counts[KEYS]) > 100
    asked = [
        client.session.evaluate(EvaluateRequest(1, client.request.enrolment, model, "test", statics))
        for statics in (counts, no_counts(len(DEMO.vocabulary.items)))
    ]
    assert asked[0].metrics == asked[1].metrics
    doubled = {**counts, VALUES: 2 * counts[VALUES]}
    doubled_sums = client.session.evaluate(EvaluateRequest(1, client.request.enrolment, model, "test", doubled))
    assert doubled_sums.metrics["shared_mrr20"] != asked[0].metrics["shared_mrr20"]


def test_a_run_that_was_not_announced_as_one_that_takes_counts_gets_none() -> None:
    """The owner's policy looks at what is announced."""
    client = Asked(configured(count_offset=False))
    with pytest.raises(RefusedError, match="does not announce such counts"):
        client.session.counts(client.request)
    assert not client.noises


@pytest.mark.parametrize("markets", [1, 2])
def test_a_user_may_be_in_all_of_a_clients_markets(markets: int, monkeypatch: pytest.MonkeyPatch) -> None:
    scales: list[float] = []

    def noted(counts: Arrays, items: int, noise: float, rng: np.random.Generator) -> Arrays:
        scales.append(noise)
        return counts

    monkeypatch.setattr("client.tasks.markets.learner.noised", noted)
    learner_of(configured(), DEMO.vocabulary, DEMO.units[:markets]).private_counts(1.5, np.random.default_rng(0))
    assert scales == [1.5 * markets]
