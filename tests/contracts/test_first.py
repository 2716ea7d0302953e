"""Runs that train a network on top of the sums of a closed form."""

from pathlib import Path

import numpy as np
import pytest

from client.data.read import read_all
from client.session import Session
from client.state import MemoryStore
from client.tasks.registry import build_learner
from client.training.foresight import training_loss
from client.training.local_round import train
from client.training.participant import Participant
from common.arrays import Arrays
from common.config.parse import flatten, from_json, parse, to_json
from common.config.run import RunConfig
from common.methods.ridge import Ridge
from common.options import Scalar
from common.privacy.accounts import gdp_of
from common.tasks.registry import closed_form_of
from common.tasks.rules import ease
from common.wire.messages import TrainReply, TrainRequest
from deploy.simulation import blocks
from deploy.simulation.grid import simulate
from server.record.folder import RunDirectory
from server.round.state import RunState
from server.run import run
from tests.contracts.test_ridge import solution
from tests.support.configurations import refusal
from tests.support.hubs import NodeGrid, settings, split
from tests.support.owners import SHARING, costs_of, noisy, owners, rounds_of, total_of
from tests.support.sum_runs import POLICY, SumFederation, noised, summed
from tests.support.toys import CATALOGUE, configured, toy_dataset

ALLOWED = {"methods": ("ridge", "fedavg"), "allow_counts": "clear"}
RULES_SUMS = closed_form_of("rules").sums


def model_of(folder: Path) -> Arrays:
    """Return the last model of the run `toy`, with what was solved before it."""
    return RunDirectory(folder, "toy").load_model()[0]


def with_catalogue(folder: Path, method: str = "fedavg", **options: object) -> RunConfig:
    folder.mkdir(exist_ok=True)
    (folder / "catalogue.json").write_text(CATALOGUE.to_json(), "utf-8")
    return configured(method, catalogue=str(folder / "catalogue.json"), **options)


@pytest.mark.parametrize("method", ["fedavg", "fedrule", "fedadam", "ditto", "ifca"])
def test_a_network_trains_after_the_sums(method: str, tmp_path: Path) -> None:
    config = with_catalogue(tmp_path, method, first="ridge", rounds=RULES_SUMS + 2)
    result = simulate(config, toy_dataset(12), tmp_path)
    assert (result.status, result.rounds_done) == ("completed", RULES_SUMS + 2)
    events = rounds_of(tmp_path)
    assert [bool(event.metrics) for event in events] == [False, False, True, True, True], "the sums alone are measured"
    simulate(
        with_catalogue(tmp_path / "ridge", "ridge", tasks__rules__validation_share=0.3),
        toy_dataset(12),
        tmp_path / "ridge",
    )
    alone = solution(tmp_path / "ridge")
    assert alone.keys() < {*model_of(tmp_path)}
    for name, array in solution(tmp_path).items():
        np.testing.assert_array_equal(alone[name], array, err_msg=name)


def test_requests_for_sums_hold_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[TrainRequest] = []
    clients = owners(5, SHARING.model_copy(update=ALLOWED))
    participant = Session.participant

    def record(self: Session, request: TrainRequest) -> Participant:
        asked.append(request)
        return participant(self, request)

    monkeypatch.setattr(Session, "participant", record)
    clients.run(settings(tmp_path, "fedavg", first="ridge", rounds=RULES_SUMS + 1), tmp_path)
    assert [bool(request.model) for request in asked] == [False] * 5 * RULES_SUMS + [True] * 5
    assert all(ease.is_solved(request.statics) for request in asked[-5:])


def test_hubs_train_as_single_nodes_do(tmp_path: Path) -> None:
    found = {}
    for answer in ("sums", "replies"):
        hub, others = split(owners(5, SHARING.model_copy(update=ALLOWED)))
        (tmp_path / answer).mkdir()
        config = settings(tmp_path / answer, "fedavg", first="ridge", rounds=RULES_SUMS + 2, federation__answer=answer)
        assert run(NodeGrid({**others, 8: hub.respond}), config, tmp_path / answer).status == "completed"
        checkpoint = RunDirectory(tmp_path / answer, "toy").checkpoints.load_latest()
        assert checkpoint
        found[answer] = checkpoint.groups["model"]
    for name, array in found["replies"].items():
        np.testing.assert_allclose(found["sums"][name], array, atol=1e-5, err_msg=name)


def test_masks_change_nothing(tmp_path: Path) -> None:
    found = {}
    for trust in ("helpers", "local"):
        config = summed("fedavg", trust, first="ridge", rounds=RULES_SUMS + 2)
        federation = SumFederation(tmp_path / trust, policy=POLICY.model_copy(update=ALLOWED))
        assert federation.run(config).rounds_done == RULES_SUMS + 2
        found[trust] = model_of(tmp_path / trust)
    network = found["local"].keys() - solution(tmp_path / "local").keys()
    assert network
    for name in network:
        np.testing.assert_allclose(found["helpers"][name], found["local"][name], atol=1e-4, err_msg=name)


class KilledError(BaseException):
    """End of a process before a round."""


@pytest.mark.parametrize("trust", ["local", "helpers"])
def test_a_run_killed_between_the_phases_ends_with_the_same_model(trust: str, tmp_path: Path) -> None:
    found, config = {}, summed("fedavg", trust, first="ridge", rounds=RULES_SUMS + 2)

    def kill(state: RunState) -> None:
        if state.round == last:
            raise KilledError

    for name, kills in (("whole", ()), ("killed", (RULES_SUMS, RULES_SUMS + 1))):
        federation = SumFederation(tmp_path / name, policy=POLICY.model_copy(update=ALLOWED))
        for last in kills:
            resumed = config.model_copy(update={"resume": last != kills[0]})
            with pytest.raises(KilledError):
                run(federation.grid, resumed, federation.runs, on_round=kill)
            federation.connect()
        assert federation.run(config, resume=bool(kills)).status == "completed"
        found[name] = model_of(federation.runs)
    for name, array in found["whole"].items():
        np.testing.assert_array_equal(found["killed"][name], array, err_msg=name)


@pytest.mark.parametrize(
    ("task", "source", "model"),
    [
        ("rules", "demo:0-40", "default"),
        ("sessions", "demo:0-6", "default"),
        ("traffic", "demo:0-3", "default"),
        ("ratings", "demo:0-8", "paper"),
        ("markets", "demo:5-6", "default"),
    ],
)
def test_a_network_starts_as_a_rest_of_zero_and_lowers_its_loss(
    task: str, source: str, model: str, tmp_path: Path
) -> None:
    dataset, share = read_all(task, source), f"tasks.{task}.validation-share"
    (tmp_path / "catalogue.json").write_text(dataset.vocabulary.to_json(), "utf-8")
    named = {"task": task, "run-id": "toy", "model": model, share: 0.3, "catalogue": str(tmp_path / "catalogue.json")}
    named["federation.min-clients"] = 1
    simulate(parse({**named, "method": "ridge"}), dataset, tmp_path)
    solved, config = solution(tmp_path), parse({**named, "method": "fedavg", "first": "ridge"})
    learner = build_learner(config, dataset)
    start = {name: p.detach().numpy() for name, p in learner.module.named_parameters()}
    alone, _ = learner.evaluate({}, solved, "test")
    assert alone == pytest.approx(learner.evaluate(start, solved, "test")[0], abs=1e-6)
    about = "client", "toy", 0, learner, MemoryStore(), TrainRequest(1, "", start, statics=solved)
    [reply] = train(config.method_options, [Participant(*about, 5)])
    assert isinstance(reply, TrainReply)
    moved = {name: a - reply.update.get(name, 0) for name, a in start.items()}
    assert training_loss(learner, moved, solved) < training_loss(learner, start, solved)
    assert learner.evaluate(moved, solved, "test")[0] != alone


def test_blocks_of_a_simulation_train_on_top_of_the_sums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {}
    for name, most in (("single", blocks.FOLDED_BYTES), ("blocks", 0)):
        monkeypatch.setattr(blocks, "FOLDED_BYTES", most)
        simulate(
            with_catalogue(tmp_path / name, first="ridge", rounds=RULES_SUMS + 2), toy_dataset(12), tmp_path / name
        )
        found[name] = model_of(tmp_path / name)
    for name, array in found["single"].items():
        np.testing.assert_allclose(found["blocks"][name], array, atol=1e-5, err_msg=name)


@pytest.mark.parametrize(("method", "share"), [("fedavg", 0.5), ("bgtplanner", 0.8)])
def test_the_budget_is_shared_between_sums_and_training(method: str, share: float, tmp_path: Path) -> None:
    config = noisy(tmp_path, method, first="ridge", rounds=4, **{"privacy.first-share": share})
    clients = owners(3, SHARING)
    assert clients.run(config, tmp_path).status == "completed"
    total, costs = total_of(config), costs_of(tmp_path)
    assert costs[0] == pytest.approx(share * total)
    assert sum(costs) <= total * (1 + 1e-9)
    assert max(clients.spent(config).values()) <= total * (1 + 1e-9)
    if method == "fedavg":
        assert costs[1:] == [pytest.approx((1 - share) * total / 3)] * 3


def test_helpers_add_the_noise_of_sums_and_training(tmp_path: Path) -> None:
    federation, config = SumFederation(tmp_path, policy=POLICY.model_copy(update=ALLOWED)), noised(first="ridge")
    assert federation.run(config).rounds_done == config.rounds
    total = gdp_of(config.privacy.epsilon, config.privacy.delta)
    assert max(federation.spent(config)) <= total * (1 + 1e-9)
    assert min(federation.spent(config)) == pytest.approx(total, rel=0.02)


def test_a_planner_starts_from_the_metrics_of_the_sums(tmp_path: Path) -> None:
    config = noisy(tmp_path, "bgtplanner", first="ridge", rounds=4)
    owners(3, SHARING).run(config, tmp_path)
    first, second, *_ = rounds_of(tmp_path)
    assert first.metrics
    assert second.server["reward"] == pytest.approx(second.metrics["hr20_shown"] - first.metrics["hr20_shown"])


def test_a_training_without_gain_ends_early(tmp_path: Path) -> None:
    late = {"planner.stop": "plateau", "planner.patience": 2, "privacy.epsilon": 0.1}
    config, clients = noisy(tmp_path, "uniform", first="ridge", rounds=9, **late), owners(3, SHARING)
    result = clients.run(config, tmp_path)
    assert result.rounds_done < 9
    assert "brought no gain" in result.reason
    assert max(clients.spent(config).values()) < 0.9 * total_of(config)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"first": "fedavg"}, "method fedavg has no sums that could come first; set first=ridge"),
        ({"first": "rigde"}, "did you mean 'ridge'"),
        ({"first": "ridge", "method": "ridge"}, "method ridge has no training after its sums; remove first=ridge"),
        ({"first": "ridge", "rounds": 3}, "rounds=3 leaves no round of fedrule: ridge has 3 sums"),
        ({"first": "ridge", "start-from": "old"}, "a run with start-from has one phase"),
        ({"first": "ridge", "privacy.unit": "record"}, "privacy.unit=record does not cover; set privacy.unit=client"),
        (
            {"method": "bgtplanner", "planner.inner": "ridge", "privacy.unit": "client"},
            "set method=ridge, or first=ridge and planner.inner to a method that trains",
        ),
    ],
)
def test_what_cannot_come_first_is_refused(options: dict[str, Scalar], message: str) -> None:
    assert message in refusal(options)


def test_options_of_both_methods_survive_the_wire() -> None:
    config = parse({"first": "ridge", "algorithm.ridge.strength": 2.0, "training.lr": 0.02})
    assert to_json(from_json(to_json(config))) == to_json(parse(flatten(config))) == to_json(config)
    assert config.phases[0].method_options == Ridge(strength=2.0)
    assert config.at(3).capabilities.closed_form
    assert config.at(4) is config
