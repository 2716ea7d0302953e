"""Whole runs in one process: the same server and client code as over a network."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client.app import failure_reply
from client.enrolment import ENROLMENT
from client.policy import Policy
from client.privacy.in_memory import in_memory
from client.session import MODEL, Session
from client.state import DiskStore, MemoryStore, Store
from client.tasks.rules.data.homes import Device, Home, Homes, as_edges
from client.tasks.rules.learner import RulesLearner
from common.arrays import sha256
from common.config.run import RunConfig
from common.errors import FedloomError, QuorumError
from common.options import Scalar
from common.tasks.rules.vocabulary import RuleCatalogue
from deploy.simulation import InProcessGrid, simulate
from server.artifacts import RunDirectory
from server.journal import Journal
from server.run import run
from tests.support.build import learner_of
from tests.support.toys import CATALOGUE, METHODS, configured, toy_dataset, toy_homes


@pytest.fixture
def settings(tmp_path: Path) -> Callable[..., RunConfig]:
    """Return configurations of runs with the toy vocabulary."""
    path = tmp_path / "catalogue.json"
    path.write_text(CATALOGUE.to_json(), "utf-8")

    def make(method: str = "fedrule", **options: Scalar) -> RunConfig:
        quick = {"rounds": 3, "federation__wait": 0.1, "federation__min_clients": 1, "catalogue": str(path)}
        return configured(method, **{**quick, **options})  # type: ignore[arg-type]

    return make


Settings = Callable[..., RunConfig]


def session(name: str, homes: tuple[Home, ...], store: Store, policy: Policy | None = None) -> Session:
    def learner(config: RunConfig, catalogue: RuleCatalogue) -> RulesLearner:
        return learner_of(config, catalogue, homes)

    return Session(name, learner, store, in_memory(policy or Policy(allow_counts=True)))


def sessions(stores: list[Store]) -> dict[int, Session]:
    homes = toy_homes(len(stores))
    return {k + 1: session(f"client-{k}", (home,), stores[k]) for k, home in enumerate(homes)}


@pytest.mark.parametrize("method", METHODS)
def test_one_seed_one_result(method: str, settings: Settings, tmp_path: Path) -> None:
    first, second, other = (
        simulate(settings(method, seed=seed, rounds=2), toy_dataset(3), tmp_path / folder)
        for seed, folder in ((0, "a"), (0, "b"), (1, "c"))
    )
    assert (first.model_sha256, first.metrics) == (second.model_sha256, second.metrics)
    assert other.model_sha256 != first.model_sha256
    assert (first.status, first.rounds_done, sorted(first.clients)) == (
        "completed",
        2,
        [f"client-{k}" for k in range(3)],
    )


@pytest.mark.parametrize("method", METHODS)
def test_stacked_clients_learn_what_they_learn_one_at_a_time(method: str, settings: Settings, tmp_path: Path) -> None:
    models = []
    for together in (1, 4):
        simulate(settings(method, rounds=2), toy_dataset(4), tmp_path / str(together), together=together)
        models.append(RunDirectory(tmp_path / str(together), "toy").load_model()[0])
    for model in models[1:]:
        for name, a in models[0].items():
            np.testing.assert_allclose(model[name], a, rtol=1e-3, atol=1e-4)


def test_a_federation_of_one(settings: Settings, tmp_path: Path) -> None:
    result = simulate(settings(), toy_dataset(4), tmp_path, clients=1)
    assert (result.status, [c.examples for c in result.clients.values()]) == ("completed", [4])


def test_homes_are_dealt_to_clients_nearly_evenly(settings: Settings, tmp_path: Path) -> None:
    result = simulate(settings(rounds=1), toy_dataset(7), tmp_path, clients=3)
    assert sorted(client.examples for client in result.clients.values()) == [2, 2, 3]


def test_a_client_without_a_rule_to_train_on_takes_no_part_and_breaks_nothing(
    settings: Settings, tmp_path: Path
) -> None:
    bare = Home("user-bare", (Device("d0", 0), Device("d1", 1)), as_edges([]))
    with_it = Homes((*toy_homes(3), bare), CATALOGUE)
    result = simulate(settings(), with_it, tmp_path / "with")
    without = simulate(settings(), Homes(toy_homes(3), CATALOGUE), tmp_path / "without")
    assert result.model_sha256 == without.model_sha256
    rounds = [e for e in RunDirectory(tmp_path / "with", "toy").events() if e.event == "round"]
    assert [(e.asked, e.answered) for e in rounds] == [(3, 3)] * 3


def test_everything_a_run_leaves_agrees(settings: Settings, tmp_path: Path) -> None:
    result = simulate(settings(), toy_dataset(3), tmp_path)
    folder = RunDirectory(tmp_path, "toy")
    assert sha256(folder.load_model()[0]) == result.model_sha256
    events = list(folder.events())
    assert [e.event for e in events] == ["start", "round", "round", "round", "finish"]
    assert events[-2].metrics == result.metrics
    assert json.loads((folder.path / "result.json").read_text())["model_sha256"] == result.model_sha256
    assert sum(e.bytes_up for e in events[1:-1]) == result.bytes_up > 0


class PullThePlugError(Exception):
    """The machine went down."""


@pytest.mark.parametrize(
    ("method", "options", "disk"),
    [
        ("fedavg", {"momentum": 0.9}, False),
        ("fedadam", {}, False),
        ("fedrule", {"optimizer": "sgd", "control": "eq3", "lr": 0.3}, False),
        ("fedrule", {}, True),
        ("fedrule", {"server_optimizer": "adam", "federation__cohort": 0.5}, True),
    ],
)
def test_a_run_resumed_after_a_crash_ends_as_one_that_never_stopped(
    method: str,
    options: dict[str, Any],
    disk: bool,
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = settings(method, rounds=3, **options)
    through = run(InProcessGrid(sessions([MemoryStore() for _ in range(3)]), 1), config, tmp_path / "through")

    stores: list[Store] = [DiskStore(tmp_path / f"s{k}") if disk else MemoryStore() for k in range(3)]
    evaluated = Journal.record_evaluation

    def crash(journal: Journal, number: int, evaluation: Any) -> None:
        evaluated(journal, number, evaluation)
        if number == 2:
            raise PullThePlugError

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "record_evaluation", crash)
        with pytest.raises(PullThePlugError):
            run(InProcessGrid(sessions(stores), 1), config, tmp_path / "torn")
    assert RunDirectory(tmp_path / "torn", "toy").result() is None

    resumed = run(InProcessGrid(sessions(stores), 1), config.model_copy(update={"resume": True}), tmp_path / "torn")
    assert (resumed.rounds_done, resumed.model_sha256) == (3, through.model_sha256)


class Failing(InProcessGrid):
    """Client `node` answers with an error from its n-th request to train on."""

    def __init__(self, stores: list[Store], nodes: set[int], after: int) -> None:
        super().__init__(sessions(stores), 1)
        self.nodes, self.after, self.asked = nodes, after, 0

    def _train(self, messages: list[Any]) -> list[Any]:
        self.asked += 1
        broken = self.nodes if self.asked > self.after else set()
        fine = [m for m in messages if m.metadata.dst_node_id not in broken]
        lost = [m for m in messages if m.metadata.dst_node_id in broken]
        replies = super()._train(fine) if fine else []
        return [*replies, *(failure_reply(m, FedloomError("out of memory")) for m in lost)]


def test_below_quorum_the_run_stops_saying_so_and_keeps_its_last_good_model(settings: Settings, tmp_path: Path) -> None:
    config = settings(rounds=4, federation__min_replies=2, lr=0.01)
    good = run(Failing([MemoryStore() for _ in range(3)], set(), 0), replace_rounds(config, 2), tmp_path / "good")
    with pytest.raises(QuorumError) as caught:
        run(Failing([MemoryStore() for _ in range(3)], {1, 2}, 2), config, tmp_path / "bad")
    text = "round 3: 1 usable replies, 2 needed; client-0: out of memory; client-1: out of memory"
    assert str(caught.value) == text

    folder = RunDirectory(tmp_path / "bad", "toy")
    result = folder.result()
    assert result is not None
    assert (result.status, result.reason, result.rounds_done) == ("failed", text, 2)
    assert result.model_sha256 == good.model_sha256 == sha256(folder.load_model()[0])
    assert [e.event for e in folder.events()] == ["start", "round", "round", "finish"]


def replace_rounds(config: RunConfig, rounds: int) -> RunConfig:
    return config.model_copy(update={"rounds": rounds})


def test_a_failing_client_is_named_in_the_rounds_line_and_the_others_go_on(settings: Settings, tmp_path: Path) -> None:
    run(Failing([MemoryStore() for _ in range(3)], {2}, 1), settings(), tmp_path)
    rounds = [e for e in RunDirectory(tmp_path, "toy").events() if e.event == "round"]
    assert [(e.asked, e.answered) for e in rounds] == [(3, 3), (3, 2), (3, 2)]
    assert [e.refused for e in rounds] == [{}, {"client-1": "out of memory"}, {"client-1": "out of memory"}]


def test_a_client_whose_policy_says_no_is_named_with_its_reason(settings: Settings, tmp_path: Path) -> None:
    homes = toy_homes(2)
    nodes = {
        1: session("willing", homes[:1], MemoryStore()),
        2: session("strict", homes[1:], MemoryStore(), Policy(methods=("fedavg",))),
    }
    with pytest.raises(QuorumError, match="refused: the policy does not allow method 'fedrule'"):
        run(InProcessGrid(nodes, 1), settings(federation__min_clients=2), tmp_path / "two")
    result = RunDirectory(tmp_path / "two", "toy").result()
    assert result is not None
    assert (result.status, result.rounds_done) == ("failed", 0)
    assert run(InProcessGrid(nodes, 1), settings(), tmp_path / "one").status == "completed"


def test_a_slow_client_makes_fewer_steps_and_the_run_goes_on(settings: Settings, tmp_path: Path) -> None:
    homes = toy_homes(2)
    nodes = {
        1: session("quick", homes[:1], MemoryStore()),
        2: session("slow", homes[1:], MemoryStore(), Policy(max_local_steps=1)),
    }
    assert run(InProcessGrid(nodes, 1), settings(), tmp_path).status == "completed"


def test_counts_are_summed_once_and_travel_with_the_model(settings: Settings, tmp_path: Path) -> None:
    result = simulate(settings(tasks__rules__count_offset=True), toy_dataset(3), tmp_path)
    model, _ = RunDirectory(tmp_path, "toy").load_model()
    learners = [learner_of(settings(), CATALOGUE, (home,)) for home in toy_homes(3)]
    np.testing.assert_array_equal(model["counts"], sum(learner.counts()["counts"] for learner in learners))
    assert result.status == "completed"


def test_a_cohort_is_a_share_of_the_clients(settings: Settings, tmp_path: Path) -> None:
    simulate(settings(federation__cohort=0.5, rounds=4), toy_dataset(4), tmp_path)
    rounds = [e for e in RunDirectory(tmp_path, "toy").events() if e.event == "round"]
    assert [e.asked for e in rounds] == [2] * 4


def test_rounds_between_evaluations_have_no_metrics_but_the_last_has(settings: Settings, tmp_path: Path) -> None:
    simulate(settings(evaluate_every=2, rounds=5), toy_dataset(2), tmp_path)
    rounds = [e for e in RunDirectory(tmp_path, "toy").events() if e.event == "round"]
    assert [bool(e.metrics) for e in rounds] == [False, True, False, True, True]


def test_what_all_clients_are_told_is_kept_once_and_the_finished_model_not_at_all(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else thousands of clients would keep thousands of models in one process that nobody asks any more."""
    kept: dict[str, list[bytes]] = {}
    write = MemoryStore.write

    def note(store: MemoryStore, run: str, name: str, content: bytes) -> None:
        kept.setdefault(name, []).append(content)
        write(store, run, name, content)

    monkeypatch.setattr(MemoryStore, "write", note)
    simulate(settings("fedavg", rounds=1), toy_dataset(3), tmp_path)
    assert MODEL not in kept
    assert len({id(content) for content in kept[ENROLMENT]}) == 1 < len(kept[ENROLMENT])
