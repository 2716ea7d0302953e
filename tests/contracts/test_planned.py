"""Planned rounds, whole runs of them: what is spent, when they end, what outlives a crash, and noise under every method."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load

from client.data.rules.homes import Dataset, Home
from client.policy import Policy
from client.privacy.simulated import in_memory
from client.session import MODEL, Session
from client.state import MemoryStore
from client.tasks import TaskLearner, build_learner
from common.arrays import Arrays, sha256
from common.config import RunConfig, Scalar
from common.errors import RunError
from common.privacy.accounts import build_account
from common.privacy.zcdp import rho_of
from common.tasks.vocabularies import Names
from deploy.simulation import InProcessGrid, simulate
from server.artifacts import RunDirectory
from server.events import Result, Round
from server.journal import Journal
from server.run import run
from tests.sensors import road_config, sensor
from tests.sensors import session as sensor_session
from tests.toys import CATALOGUE, configured, toy_dataset, toy_homes

SHARING = Policy(share_metrics="always")
ON_RULES = ("fedavg", "fedprox", "fedadam", "fedyogi", "fedadagrad", "fedrule", "fedga", "fedrep", "ditto", "local")
MECHANISMS = ("gaussian", "laplace", "privunit")
PLANNERS: dict[str, dict[str, Scalar]] = {
    "bgtplanner": {"arms": 2, "t0": 1, "t_min": 0.5},
    "uniform": {},
    "adpml": {"growth": 8.0},
    "adap": {"beta": 0.6, "falls": 1, "clip_floor": 0.2},
}


@dataclass
class Owners:
    """Clients with ledgers that outlive the server, one home each.

    Args:
        policies: One a client.
        seed: Of their noise.
    """

    policies: tuple[Policy, ...]
    seed: int = 0
    stores: dict[str, MemoryStore] = field(default_factory=dict)

    def __post_init__(self) -> None:
        homes = toy_homes(len(self.policies))
        self.sessions = {k + 1: self._session(f"client-{k}", home, k) for k, home in enumerate(homes)}

    def run(self, config: RunConfig, folder: Path) -> Result:
        return run(InProcessGrid(self.sessions, 1), config, folder)

    def spent(self, config: RunConfig) -> dict[str, float]:
        """What ledgers hold of the run."""
        return {one.client: one.guard.ledger(config.privacy).spent_in("toy") for one in self.sessions.values()}

    def _session(self, name: str, home: Home, k: int) -> Session:
        def learner(config: RunConfig, vocabulary: Names) -> TaskLearner:
            return build_learner(config, Dataset((home,), CATALOGUE))

        draws = count()
        self.stores[name] = MemoryStore()
        guard = in_memory(self.policies[k], lambda: np.random.default_rng([self.seed, k, next(draws)]))
        return Session(name, learner, self.stores[name], guard)


def owners(count: int = 3, policy: Policy = SHARING) -> Owners:
    return Owners((policy,) * count)


@pytest.fixture
def settings(tmp_path: Path) -> Callable[..., RunConfig]:
    """Configurations of runs with noise."""
    path = tmp_path / "catalogue.json"
    path.write_text(CATALOGUE.to_json(), "utf-8")

    def make(method: str = "uniform", **options: Scalar) -> RunConfig:
        quick: dict[str, Scalar] = {"rounds": 8, "federation__wait": 0.1, "federation__min_clients": 1}
        noise: dict[str, Scalar] = {"privacy__unit": "client", "privacy__epsilon": 5.0}
        return configured(method, **{**quick, **noise, "catalogue": str(path), **options})

    return make


Settings = Callable[..., RunConfig]


def total_of(config: RunConfig) -> float:
    return build_account(config.privacy).total(config.privacy.epsilon, config.privacy.delta)


def rounds_of(folder: Path) -> list[Round]:
    return [event for event in RunDirectory(folder, "toy").events() if isinstance(event, Round)]


def costs_of(folder: Path) -> list[float]:
    return [r.server["cost"] for r in rounds_of(folder)]


def model_of(folder: Path) -> Arrays:
    return RunDirectory(folder, "toy").load_model()[0]


@pytest.mark.parametrize(
    ("method", "mechanism"), [*((m, "gaussian") for m in PLANNERS), ("bgtplanner", "laplace"), ("adap", "privunit")]
)
def test_no_client_ever_spends_more_than_promised(
    method: str, mechanism: str, settings: Settings, tmp_path: Path
) -> None:
    config, clients = settings(method, privacy__mechanism=mechanism, **PLANNERS[method]), owners()
    result = clients.run(config, tmp_path)
    total, costs = total_of(config), costs_of(tmp_path)
    assert result.status == "completed"
    for spent in clients.spent(config).values():
        assert 0.5 * total < spent <= total
        assert spent == pytest.approx(sum(costs), rel=1e-6)
    left = [100 * (1 - part / total) for part in np.cumsum(costs)]
    assert [100 * r.server["left"] for r in rounds_of(tmp_path)] == pytest.approx(left, abs=1e-6)
    assert all(math.isnan(r.loss) and r.answered == r.asked == 3 for r in rounds_of(tmp_path))
    assert result.privacy.epsilon_spent_max is not None
    assert 0 < result.privacy.epsilon_spent_max <= config.privacy.epsilon == result.privacy.epsilon


def test_a_run_whose_clients_can_pay_no_more_ends_well_and_hands_its_model_out(
    settings: Settings, tmp_path: Path
) -> None:
    """The two arms of stage 1a alone cost three even shares: eight rounds are out of reach."""
    clients = owners()
    result = clients.run(settings("bgtplanner", **PLANNERS["bgtplanner"]), tmp_path)
    assert (result.status, result.reason) == ("completed", "ended early: no client can pay another round")
    assert result.rounds_done == len(rounds_of(tmp_path)) < 8
    assert result.model_sha256 == sha256(model_of(tmp_path))
    for store in clients.stores.values():
        assert sha256(load(store.read("toy", MODEL) or b"")) == result.model_sha256
    assert result.metrics == rounds_of(tmp_path)[-1].metrics != {}
    assert sorted(result.clients) == ["client-0", "client-1", "client-2"]


def test_of_a_run_that_ends_early_the_best_round_is_never_chosen_on_test_data(
    settings: Settings, tmp_path: Path
) -> None:
    config = settings("bgtplanner", tasks__rules__validation_share=0.3, **PLANNERS["bgtplanner"])
    result = owners().run(config, tmp_path)
    measured = {r.round: r.metrics for r in rounds_of(tmp_path)}
    assert result.best is not None
    assert result.best.metrics == measured[result.best.round]
    assert result.metrics != measured[result.rounds_done], "test data, not validation data"


def test_who_can_pay_no_more_is_left_out_and_the_others_go_on(settings: Settings, tmp_path: Path) -> None:
    config = settings()
    poor = Policy(share_metrics="always", max_epsilon=2.0)
    clients = Owners((SHARING, poor, SHARING))
    result = clients.run(config, tmp_path)
    even = total_of(config) / 8
    affordable = int(rho_of(2.0, 1e-5) / even)
    assert 0 < affordable < 8
    assert [r.asked for r in rounds_of(tmp_path)] == [3] * affordable + [2] * (8 - affordable)
    assert [r.server["retired"] for r in rounds_of(tmp_path)] == [0] * affordable + [1] * (8 - affordable)
    assert (result.status, result.reason) == ("completed", "")
    assert clients.spent(config)["client-1"] == pytest.approx(affordable * even, rel=1e-6)
    assert "client-1" in result.clients, "it is measured and has the model all the same"


def test_a_round_that_too_few_could_pay_is_not_begun(settings: Settings, tmp_path: Path) -> None:
    config = settings(federation__min_replies=3)
    clients = Owners((SHARING, SHARING, Policy(share_metrics="always", max_epsilon=2.0)))
    result = clients.run(config, tmp_path)
    assert (result.status, result.reason) == (
        "completed",
        "ended early: 2 clients can pay another round, 3 are needed",
    )
    assert len(set(clients.spent(config).values())) == 1


def test_clients_outside_a_cohort_pay_nothing(settings: Settings, tmp_path: Path) -> None:
    config, clients = settings("bgtplanner", federation__cohort=0.5, **PLANNERS["bgtplanner"]), owners(4)
    clients.run(config, tmp_path)
    assert [r.asked for r in rounds_of(tmp_path)] == [2] * 8
    assert sum(clients.spent(config).values()) == pytest.approx(2 * sum(costs_of(tmp_path)), rel=1e-6)


class PullThePlugError(Exception):
    """The server went down."""


def torn(clients: Owners, config: RunConfig, folder: Path, after: tuple[str, int], patch: pytest.MonkeyPatch) -> None:
    """A run whose server goes down after it noted that step of that round."""
    step, last = after
    noted = getattr(Journal, step)

    def note(journal: Journal, *told: Any) -> None:
        noted(journal, *told)
        about = told[-1] if step == "observed" else told[0].state
        if about.round == last:
            raise PullThePlugError

    with patch.context() as during:
        during.setattr(Journal, step, note)
        with pytest.raises(PullThePlugError):
            clients.run(config, folder)


@pytest.mark.parametrize("method", list(PLANNERS))
def test_a_resumed_run_goes_on_as_if_nothing_had_happened(
    method: str, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = settings(method, **PLANNERS[method])
    through = owners().run(config, tmp_path / "through")
    clients = owners()
    torn(clients, config, tmp_path / "torn", ("observed", 4), monkeypatch)
    resumed = clients.run(config.model_copy(update={"resume": True}), tmp_path / "torn")
    assert costs_of(tmp_path / "torn") == pytest.approx(costs_of(tmp_path / "through"), rel=1e-12)
    assert (resumed.model_sha256, resumed.reason) == (through.model_sha256, through.reason)
    assert resumed.privacy.epsilon_spent_max == pytest.approx(through.privacy.epsilon_spent_max)


def test_a_crash_between_paying_and_learning_costs_no_more_than_promised(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, clients = settings("bgtplanner", **PLANNERS["bgtplanner"]), owners()
    torn(clients, config, tmp_path, ("trained", 3), monkeypatch)
    before = clients.spent(config)
    resumed = clients.run(config.model_copy(update={"resume": True}), tmp_path)
    assert resumed.status == "completed"
    assert all(before[name] < spent <= total_of(config) for name, spent in clients.spent(config).items())


def test_simulated_clients_that_forget_what_they_spent_are_asked_for_no_more(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = settings()
    torn(owners(), config, tmp_path, ("observed", 5), monkeypatch)
    forgetful = owners()
    resumed = forgetful.run(config.model_copy(update={"resume": True, "rounds": 20}), tmp_path)
    assert sum(costs_of(tmp_path)) <= total_of(config) * (1 + 1e-9)
    assert max(forgetful.spent(config).values()) <= 3 / 8 * total_of(config)
    assert resumed.reason == "ended early: no client can pay another round"


def test_noise_without_a_planner_is_spent_evenly(settings: Settings, tmp_path: Path) -> None:
    planned = owners().run(settings("uniform", rounds=3), tmp_path / "planned")
    plain = owners().run(settings("fedavg", rounds=3), tmp_path / "plain")
    assert planned.model_sha256 == plain.model_sha256
    assert costs_of(tmp_path / "plain") == pytest.approx([rho_of(5.0, 1e-5) / 3] * 3)


def test_a_planner_that_needs_metrics_which_nobody_shares_says_what_to_do(settings: Settings, tmp_path: Path) -> None:
    private = Policy()
    with pytest.raises(RunError, match=r"'loss', which no client shares .*share-metrics=always.* or set reward=norm"):
        owners(policy=private).run(settings("bgtplanner"), tmp_path / "metrics")
    result = RunDirectory(tmp_path / "metrics", "toy").result()
    assert result is not None
    assert (result.status, "reward=norm" in result.reason) == ("failed", True)
    by_norm = settings("bgtplanner", reward="norm", **PLANNERS["bgtplanner"])
    assert owners(policy=private).run(by_norm, tmp_path / "norm").status == "completed"
    assert any(r.server["reward"] for r in rounds_of(tmp_path / "norm")[1:])


@pytest.mark.parametrize(
    ("method", "mechanism"),
    [*((m, "gaussian") for m in ON_RULES), *product(("fedrule", "fedga", "local"), ("laplace", "privunit"))],
)
def test_every_method_bears_noise(method: str, mechanism: str, settings: Settings, tmp_path: Path) -> None:
    config, clients = settings(method, rounds=2, privacy__mechanism=mechanism), owners(2)
    result = clients.run(config, tmp_path)
    assert (result.status, result.rounds_done) == ("completed", 2)
    assert [(r.answered, r.refused, r.missing) for r in rounds_of(tmp_path)] == [(2, {}, [])] * 2
    due = 0.0 if method == "local" else total_of(config)  # it sends nothing
    assert list(clients.spent(config).values()) == pytest.approx([due] * 2, rel=1e-6)
    assert {c.examples for c in result.clients.values()} == {1}, "how many rules a home has stays hidden"


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("method", "releases"), [("ifca", 2), ("fedstl", 3)])
def test_methods_that_ask_more_than_once_a_round_share_its_cost(
    method: str, releases: int, mechanism: str, tmp_path: Path
) -> None:
    noise: dict[str, Scalar] = {"privacy__unit": "client", "privacy__epsilon": 20.0, "privacy__mechanism": mechanism}
    own: dict[str, Scalar] = {"recluster_every": 1, **({"cluster_steps": 1} if method == "fedstl" else {})}
    config = road_config(method, **noise, **own)
    sessions = {k + 1: sensor_session(f"client-{k}", (sensor(k),), policy=SHARING) for k in range(3)}
    result = run(InProcessGrid(sessions, 1), config, tmp_path)
    ledgers = [one.guard.ledger(config.privacy) for one in sessions.values()]
    assert result.status == "completed"
    assert [(r.answered, r.refused) for r in rounds_of(tmp_path)] == [(3, {})] * 2
    assert [len(one.rows()) for one in ledgers] == [2 * releases] * 3
    assert [one.spent() for one in ledgers] == pytest.approx([total_of(config)] * 3, rel=1e-6)


DEVIATIONS = {"gaussian": 2 / math.sqrt(2 * rho_of(9e5, 1e-5)), "laplace": math.sqrt(2) * 2 / 9e5}
"""σ = 2C/√(2ρ), and √2·b with b = 2C/ε, for C = 1."""


@pytest.mark.parametrize("mechanism", DEVIATIONS)
@pytest.mark.parametrize("method", ["fedavg", "fedprox", "fedrule", "ditto"])
def test_with_a_huge_budget_a_run_differs_by_its_noise_alone(
    method: str, mechanism: str, settings: Settings, tmp_path: Path
) -> None:
    """One round: the model is off by the mean of four clients' noise."""
    alike: dict[str, Scalar] = {"rounds": 1, "weighting": "uniform", "local_steps": 1, "lr": 0.01}
    huge: dict[str, Scalar] = {"privacy__epsilon": 9e5, "privacy__clip": 50.0, "privacy__mechanism": mechanism}
    owners(4).run(settings(method, **alike, **huge), tmp_path / "noisy")
    owners(4).run(settings(method, **alike, privacy__unit="none"), tmp_path / "plain")
    noisy, plain = model_of(tmp_path / "noisy"), model_of(tmp_path / "plain")
    away = np.concatenate([(noisy[name] - plain[name]).ravel() for name in plain])
    assert len(away) > 100
    assert away.std() == pytest.approx(50 * DEVIATIONS[mechanism] / math.sqrt(4), rel=0.2)
    assert abs(away.mean()) < 4 * away.std() / math.sqrt(len(away))


def test_a_client_that_can_pay_a_part_of_a_round_only_is_not_asked_for_any(tmp_path: Path) -> None:
    """Two even shares and a half are not three, though the half would pay for the first of a round's two answers."""
    noise: dict[str, Scalar] = {"privacy__unit": "client", "privacy__epsilon": 9.0, "privacy__mechanism": "laplace"}
    config = road_config("ifca", **noise, recluster_every=1, rounds=3)
    poor = Policy(share_metrics="always", max_epsilon=7.5)
    sessions = {k + 1: sensor_session(f"client-{k}", (sensor(k),), policy=(SHARING, poor)[k]) for k in range(2)}
    run(InProcessGrid(sessions, 1), config, tmp_path)
    assert [(r.asked, r.answered, r.refused) for r in rounds_of(tmp_path)] == [(2, 2, {}), (2, 2, {}), (1, 1, {})]
    assert sessions[2].guard.ledger(config.privacy).spent() == pytest.approx(6.0)


def test_noise_can_be_drawn_again_from_a_seed_and_only_so(settings: Settings, tmp_path: Path) -> None:
    config, data = settings(rounds=2), toy_dataset(3)
    seeds = {"first": 7, "again": 7, "other": 8, "fresh": None, "anew": None}
    models = {n: simulate(config, data, tmp_path / n, noise_seed=s).model_sha256 for n, s in seeds.items()}
    assert models["first"] == models["again"]
    assert len(set(models.values())) == 4
