"""Method ridge: closed forms have one solution over single replies, hubs and secure sums."""

import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from client.data.read import read_all
from client.owner.policy import Policy
from client.privacy.simulation import in_memory
from client.session import Session
from client.state import MemoryStore
from client.tasks.learner import Learner
from client.tasks.registry import build_learner
from client.tasks.rules.inference import recommend
from client.tasks.rules.lists import ListOptions, gained
from client.tasks.sessions.data.visitors import Visitor, Visits
from client.tasks.sessions.inference import next_items
from client.tasks.traffic.data.series import Sensors
from client.tasks.traffic.inference import forecast
from client.tasks.traffic.learner import TrafficLearner
from client.tasks.traffic.sensor import with_federated_ridge
from common.arrays import Arrays
from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import ConfigError, QuorumError
from common.options import Scalar
from common.privacy.accounts import gdp_of
from common.secure.quantisation import integer_clip
from common.secure.terms import MOST_NUMBERS
from common.tasks.closed_form import widen
from common.tasks.markets import blend
from common.tasks.ratings import neighbours
from common.tasks.registry import TASKS, closed_form_of
from common.tasks.rules import ease
from common.tasks.sessions import slist
from common.tasks.sessions.vocabulary import Items, demo_items
from common.tasks.traffic import shared_ridge
from common.tasks.traffic.autocovariances import LAGS, NOISE, SUMS
from deploy.simulation.grid import InProcessGrid, simulate, simulate_clients
from deploy.tasks.rules.model_service import export
from deploy.tasks.spec import TrainedRun
from deploy.tasks.traffic.model_service import split_pooled
from server.methods.ridge import RidgeStep
from server.record.events import RoundEvent
from server.record.folder import RunDirectory
from server.round.method import RoundContext
from server.run import run
from studies.lies.liars import LyingGrid, lies
from tests.support import sensors
from tests.support.hubs import NodeGrid, of_hub, settings, split
from tests.support.owners import SHARING, owners
from tests.support.sum_runs import POLICY, SumFederation, noised, summed
from tests.support.toys import CATALOGUE, configured, toy_dataset

ALLOWED = {"methods": ("ridge",), "allow_counts": "clear"}


def solution(folder: Path) -> Arrays:
    """Return what the run `toy` has solved."""
    checkpoint = RunDirectory(folder, "toy").checkpoints.load_latest()
    assert checkpoint is not None
    return checkpoint.groups["statics"]


def gram(solved: Arrays) -> np.ndarray:
    """Return G of a solution, whose eigenvectors have no sign."""
    vectors = solved[ease.VECTORS].astype(np.float64)
    product: np.ndarray = (vectors.T * solved[ease.VALUES]) @ vectors
    return product


def test_a_run_ends_with_its_last_sum(tmp_path: Path) -> None:
    (tmp_path / "catalogue.json").write_text(CATALOGUE.to_json(), "utf-8")
    config = configured("ridge", rounds=30, catalogue=str(tmp_path / "catalogue.json"))
    result = simulate(config, toy_dataset(12), tmp_path)
    assert (result.status, result.rounds_done) == ("completed", 3)
    solved = solution(tmp_path)
    model, _ = RunDirectory(tmp_path, "toy").load_model()
    assert model.keys() == solved.keys(), "no request and no file has the untrained network"
    homes = build_learner(config, toy_dataset(12)).examples  # each has length 1 in G
    assert np.trace(gram(solved)) == pytest.approx(homes, rel=1e-5)
    assert float(solved[ease.STRENGTH].item()) in [pytest.approx(strength) for strength in ease.STRENGTHS]


def test_recommendations_come_from_the_solution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("client.tasks.rules.lists.LEAST", -100.0)  # no rule of the toy homes is likely
    (tmp_path / "catalogue.json").write_text(CATALOGUE.to_json(), "utf-8")
    config = configured("ridge", rounds=3, catalogue=str(tmp_path / "catalogue.json"))
    simulate(config, toy_dataset(12), tmp_path)
    saved, solved = RunDirectory(tmp_path, "toy").load_model()[0], solution(tmp_path)
    home = toy_dataset(12).units[2]
    answers, _ = recommend(config, CATALOGUE, saved, home, ListOptions(10_000))
    devices, triples = {device.name: device.entity for device in home.devices}, []
    names, gains = [*devices], gained(np.zeros((len(devices),) * 2 + (4,)), home, home.rules)
    expected = []
    for answer in answers:
        relation = CATALOGUE.relations.index(f"{answer.trigger_state} → {answer.action}")
        pair = devices[answer.trigger_device_id] * len(CATALOGUE.entities) + devices[answer.action_device_id]
        triples.append(pair * len(CATALOGUE.relations) + relation)
        expected.append(gains[names.index(answer.trigger_device_id), names.index(answer.action_device_id), relation])
    types = [devices[device.name] for device in home.devices]
    mine = [(types[u] * len(CATALOGUE.entities) + types[v]) * len(CATALOGUE.relations) + r for u, v, r in home.rules]
    found = ease.logits(solved, np.array([*triples, *mine]), np.array(mine))[: len(triples)]
    scores = [answer.score for answer in answers]
    assert len(set(scores)) > 2
    assert scores == sorted(scores, reverse=True)
    assert scores == pytest.approx(1 / (1 + np.exp(-(found + expected))), abs=0.006)


def test_rules_in_closed_form_are_not_exported() -> None:
    trained = cast(TrainedRun, SimpleNamespace(config=configured("ridge", rounds=3), name="toy"))
    with pytest.raises(
        ConfigError, match="sums in place of a network, which ONNX does not hold; use fedloom recommend"
    ):
        export(trained, None)


def test_hubs_have_the_solution_of_single_replies(tmp_path: Path) -> None:
    found = {}
    for answer in ("sums", "replies"):
        found[answer] = solution(of_hub(tmp_path / answer, "ridge", ALLOWED, federation__answer=answer))
    np.testing.assert_array_equal(found["sums"][ease.TRIPLES], found["replies"][ease.TRIPLES])
    np.testing.assert_allclose(gram(found["sums"]), gram(found["replies"]), atol=1e-5)


def test_secure_sums_have_the_solution_of_plaintext(tmp_path: Path) -> None:
    found = {}
    for trust in ("helpers", "local"):
        SumFederation(tmp_path / trust, policy=POLICY.model_copy(update=ALLOWED)).run(summed("ridge", trust))
        found[trust] = solution(tmp_path / trust)
    np.testing.assert_array_equal(found["helpers"][ease.TRIPLES], found["local"][ease.TRIPLES])
    np.testing.assert_allclose(gram(found["helpers"]), gram(found["local"]), atol=1e-4)


def test_owners_opt_in_to_statistics_in_plaintext(tmp_path: Path) -> None:
    with pytest.raises(QuorumError, match=r"sending statistics in plaintext \(allow-counts = summed\)"):
        SumFederation(tmp_path, policy=POLICY).run(summed("ridge", "local"))


def test_a_run_stopped_between_two_sums_ends_with_the_same_solution(tmp_path: Path) -> None:
    found = {}
    for stops in ((3,), (1, 2, 3)):
        federation = SumFederation(tmp_path / str(len(stops)), policy=POLICY.model_copy(update=ALLOWED))
        for sums in stops:
            config = summed("ridge", "local").model_copy(update={"rounds": sums})
            federation.run(config, resume=sums != stops[0])
        found[len(stops)] = solution(tmp_path / str(len(stops)))
    assert found[1].keys() == found[3].keys()
    for name, array in found[1].items():
        np.testing.assert_array_equal(found[3][name], array)


def test_under_noise_one_sum_has_the_whole_budget(tmp_path: Path) -> None:
    federation, config = SumFederation(tmp_path, policy=POLICY.model_copy(update=ALLOWED)), noised(method="ridge")
    result = federation.run(config)
    assert (result.status, result.rounds_done) == ("completed", 1)
    solved = solution(tmp_path)
    entities, relations, noised_run, _ = solved[ease.SIZES].tolist()
    assert (solved[ease.POPULARITY].shape, noised_run) == ((entities**2 * relations,), 1)
    for session in federation.sessions.values():
        [entry] = session.releaser.budget.ledger(config.privacy).entries()
        bound = integer_clip(len(solved[ease.POPULARITY]))
        assert entry.terms.sensitivity == pytest.approx(math.sqrt(2) * bound), "no number of a home is negative"
        assert entry.terms.cost == pytest.approx(gdp_of(50.0, 1e-5), rel=0.01)


ITEMS = Items(items=demo_items().items[:12])


def visits(number: int) -> Visits:
    """Return visitors with four sessions each, which walk through the items in a circle."""
    rng, visitors = np.random.default_rng(0), []
    for k in range(number):
        walks = [(rng.integers(len(ITEMS.items)) + np.arange(rng.integers(2, 6))) % len(ITEMS.items) for _ in range(4)]
        visitors.append(Visitor(f"visitor-{k}", tuple(walk.astype(np.int64) for walk in walks)))
    return Visits(tuple(visitors), ITEMS)


def with_visitors(sessions: dict[int, Session], policy: Policy) -> dict[int, Session]:
    """Return the clients with a visitor each in place of a home."""
    found = {}
    for k, (node, session) in enumerate(sessions.items()):
        units = visits(k + 1).units[k:]
        build = partial(_build_visitor, units)
        found[node] = Session(
            session.client, build, MemoryStore(), in_memory(policy, partial(np.random.default_rng, k))
        )
    return found


def _build_visitor(units: tuple[Visitor, ...], config: RunConfig, vocabulary: Items) -> Learner:
    return build_learner(config, Visits(units, vocabulary))


def of_sessions(folder: Path) -> dict[str, Scalar]:
    """Return options of a run on sessions, whose vocabulary is written to `folder`."""
    folder.mkdir(exist_ok=True)
    (folder / "items.json").write_text(ITEMS.to_json(), "utf-8")
    return {
        "task": "sessions",
        "catalogue": str(folder / "items.json"),
        "tasks__sessions__blend-share": 0.3,
        "tasks__sessions__test-share": 0.3,
    }


def test_sessions_end_with_the_refit_and_answer(tmp_path: Path) -> None:
    config = configured("ridge", rounds=30, **of_sessions(tmp_path))
    result = simulate(config, visits(30), tmp_path)
    assert (result.status, result.rounds_done) == ("completed", 4)
    solved = solution(tmp_path)
    assert solved[slist.STAGE].tolist() == [4]
    assert result.metrics["hr20"] == 1, "there are 12 items"
    assert result.metrics["mrr20"] > 0.8, "each item is followed by the next"
    model, _ = RunDirectory(tmp_path, "toy").load_model()
    [first, *_] = next_items(config, ITEMS, model, np.array([3]), (), 1)
    assert first.item == ITEMS.items[4]
    assert first.why == f"visitors of the federation go on to it after '{ITEMS.items[3]}'"


def test_with_a_given_strength_sessions_choose_the_rest(tmp_path: Path) -> None:
    config = configured("ridge", strength=3.0, **of_sessions(tmp_path))
    result = simulate(config, visits(12), tmp_path)
    solved = solution(tmp_path)
    assert (result.rounds_done, solved[slist.STAGE].tolist()) == (4, [4])
    assert solved[slist.CHOICE][0] == 3
    assert solved[slist.CHOICE][2:].tolist() != pytest.approx(slist.DEFAULT[2:]), "chosen by gains"


def test_sessions_have_one_solution_over_hubs_and_secure_sums(tmp_path: Path) -> None:
    found = {}
    for answer in ("sums", "replies"):
        people = owners(5, SHARING.model_copy(update=ALLOWED))
        people.sessions = with_visitors(people.sessions, SHARING.model_copy(update=ALLOWED))
        hub, others = split(people)
        folder = tmp_path / answer
        folder.mkdir()
        config = settings(folder, "ridge", federation__answer=answer, **of_sessions(folder))
        assert run(NodeGrid({**others, 8: hub.respond}), config, folder).status == "completed"
        found[answer] = solution(folder)
    for trust in ("helpers", "local"):
        federation = SumFederation(tmp_path / trust, clients=5)
        federation.sessions = with_visitors(federation.sessions, POLICY.model_copy(update=ALLOWED))
        federation.connect()
        federation.run(summed("ridge", trust, **of_sessions(tmp_path / trust)))
        found[trust] = solution(tmp_path / trust)
    assert found["helpers"][slist.SIZES].tolist() == [12, 0, slist.MOST_MASKED_ITEMS]
    for name in (slist.ITEMS, slist.CHOICE, slist.ENDS, slist.COLUMNS):
        for solved in found.values():
            np.testing.assert_array_equal(solved[name], found["replies"][name], err_msg=name)
    for solved in found.values():
        np.testing.assert_allclose(solved[slist.WEIGHTS], found["replies"][slist.WEIGHTS], atol=1e-4)


def test_sessions_under_noise_have_two_sums(tmp_path: Path) -> None:
    federation = SumFederation(tmp_path, clients=5)
    federation.sessions = with_visitors(federation.sessions, POLICY.model_copy(update=ALLOWED))
    federation.connect()
    result = federation.run(noised(50.0, method="ridge", **of_sessions(tmp_path)))
    assert (result.status, result.rounds_done) == ("completed", 2)
    assert slist.is_solved(solution(tmp_path))


OF_TRAFFIC: dict[str, Scalar] = {
    "task": "traffic",
    "tasks__traffic__history": sensors.HISTORY,
    "tasks__traffic__horizon": sensors.HORIZON,
    "tasks__traffic__hidden": 2,
    "tasks__traffic__validation-share": 0.2,
}
"""Options of a run on sensors."""


def of_traffic(folder: Path) -> dict[str, Scalar]:
    """Return options of a run on sensors, whose vocabulary is written to `folder`."""
    folder.mkdir(exist_ok=True)
    (folder / "variables.json").write_text(sensors.MEASURES.to_json(), "utf-8")
    return {**OF_TRAFFIC, "catalogue": str(folder / "variables.json")}


def with_sensors(sessions: dict[int, Session], policy: Policy) -> dict[int, Session]:
    """Return the clients with a sensor each in place of a home."""
    return {
        node: sensors.session(session.client, (sensors.sensor(k),), policy=policy)
        for k, (node, session) in enumerate(sessions.items())
    }


def test_sensors_have_one_solution_over_hubs_and_secure_sums(tmp_path: Path) -> None:
    found, errors = {}, {}
    for answer in ("sums", "replies"):
        people = owners(5, SHARING.model_copy(update=ALLOWED))
        people.sessions = with_sensors(people.sessions, SHARING.model_copy(update=ALLOWED))
        hub, others = split(people)
        folder = tmp_path / answer
        folder.mkdir()
        config = settings(folder, "ridge", federation__answer=answer, **of_traffic(folder))
        result = run(NodeGrid({**others, 8: hub.respond}), config, folder)
        assert (result.status, result.rounds_done) == ("completed", 2)
        found[answer], errors[answer] = solution(folder), result.metrics["mse"]
    for trust in ("helpers", "local"):
        federation = of_sensors(tmp_path / trust)
        result = federation.run(summed("ridge", trust, **of_traffic(tmp_path / trust)))
        found[trust], errors[trust] = solution(tmp_path / trust), result.metrics["mse"]
    for name, array in found["replies"].items():
        for solved in found.values():
            np.testing.assert_allclose(solved[name], array, atol=1e-5, err_msg=name)
    assert list(errors.values()) == pytest.approx([errors["replies"]] * 4, rel=1e-4)


def of_sensors(folder: Path) -> SumFederation:
    """Return a federation of five clients with a sensor each."""
    federation = SumFederation(folder, clients=5)
    federation.sessions = with_sensors(federation.sessions, POLICY.model_copy(update=ALLOWED))
    federation.connect()
    return federation


def test_sensors_stopped_between_two_sums_end_with_the_same_choice(tmp_path: Path) -> None:
    found = []
    for stops in ((2,), (1, 2)):
        folder = tmp_path / str(len(stops))
        federation, config = of_sensors(folder), summed("ridge", "local", **of_traffic(folder))
        for sums in stops:
            federation.run(config.model_copy(update={"rounds": sums}), resume=sums != stops[0])
        found.append(solution(folder))
    assert found[0].keys() == found[1].keys()
    for name, array in found[0].items():
        np.testing.assert_array_equal(found[1][name], array)


def test_sensors_under_noise_have_one_sum_and_choose_for_themselves(tmp_path: Path) -> None:
    result = of_sensors(tmp_path).run(noised(50.0, method="ridge", **of_traffic(tmp_path)))
    assert (result.status, result.rounds_done) == ("completed", 1)
    solved = solution(tmp_path)
    assert set(solved) == {shared_ridge.SIZES, *SUMS, NOISE}
    sent = [np.linalg.norm(solved[LAGS]), solved[NOISE].item()]
    assert sent[0] > 4 > sent[1] > 0


def test_forecasts_of_sensors_come_from_the_solution_and_their_baseline_does_not(tmp_path: Path) -> None:
    federation, config = of_sensors(tmp_path), summed("ridge", "local", **of_traffic(tmp_path))
    federation.run(config)
    trained, _ = RunDirectory(tmp_path, "toy").load_model()
    model, statics = split_pooled(trained)
    assert statics.keys() == solution(tmp_path).keys()
    learner = build_learner(config, Sensors((sensors.sensor(9),), sensors.MEASURES))
    assert isinstance(learner, TrafficLearner)
    [one], joint = learner.sensors, with_federated_ridge(learner.sensors[0], statics, learner.options)
    _, places = one.targets(one.test, sensors.HORIZON)
    made = learner.forecasts(model, joint, one.test)
    np.testing.assert_allclose(made, one.profile[places] + joint.ridge[one.test], atol=1e-5)
    metrics, simple = learner.evaluate(model, statics, "test")[0], learner.baselines("test", statics)[0]
    assert metrics["mse"] == pytest.approx(one.error(made, places), rel=1e-5)
    assert simple == learner.baselines("test", {})[0], "the baseline is the own ridge regression"
    assert metrics["mse"] != pytest.approx(simple["ridge_mse"], rel=1e-3)
    later = forecast(learner, one, model, sensors.HORIZON, statics)
    alone = forecast(learner, one, model, sensors.HORIZON, {})
    assert not np.allclose(later.student, alone.student)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"task": "traffic", "model": "paper"}, "set model=default and tasks.traffic.ridge=chosen"),
        ({"task": "traffic", "tasks.traffic.ridge": "none"}, "set model=default and tasks.traffic.ridge=chosen"),
        (
            {"task": "rules", "algorithm.ridge.strength": 1e-9},
            "1e-09 leaves singular matrices; set 0, or at least 0.001",
        ),
        ({"task": "rules", "training.weighting": "examples"}, "remove training.weighting=examples"),
        (
            {"task": "rules", "method": "bgtplanner", "planner.inner": "ridge", "privacy.unit": "client"},
            "learns from the rewards of many rounds, and method ridge has 1 round; set method=ridge",
        ),
    ],
)
def test_what_a_closed_form_cannot_do_is_refused(options: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        parse({"method": "ridge", **options})


def test_tasks_without_a_closed_form_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS._loaded, "traffic", replace(TASKS["traffic"], closed_form=None))
    with pytest.raises(ConfigError, match="task 'traffic' lacks; tasks with one: rules, sessions, ratings, markets"):
        parse({"method": "ridge", "task": "traffic"})


@pytest.mark.parametrize(("task", "source"), [("ratings", "demo:0-12"), ("markets", "demo"), ("rules", "demo:0-12")])
def test_with_a_given_strength_a_run_has_all_sums(task: str, source: str, tmp_path: Path) -> None:
    dataset = read_all(task, source)
    (tmp_path / "catalogue.json").write_text(dataset.vocabulary.to_json(), "utf-8")
    named = {"method": "ridge", "task": task, "run-id": "toy", "catalogue": str(tmp_path / "catalogue.json")}
    result = simulate(parse({**named, "algorithm.ridge.strength": 0.5}), dataset, tmp_path)
    assert (result.status, result.rounds_done) == ("completed", closed_form_of(task).sums)
    solved = solution(tmp_path)
    chosen = {
        "ratings": lambda: solved[neighbours.CHOSEN][1],
        "markets": lambda: solved[blend.STRENGTHS].item(),
        "rules": lambda: solved[ease.STRENGTH].item(),
    }
    assert chosen[task]() == pytest.approx(0.5)


def test_a_planner_of_equal_costs_has_as_many_rounds_as_sums_too() -> None:
    noise = {"task": "sessions", "privacy.unit": "client"}
    planned = parse({**noise, "method": "uniform", "planner.inner": "ridge"})
    assert planned.rounds == parse({**noise, "method": "ridge"}).rounds == 2


@pytest.mark.parametrize(("task", "source"), [("ratings", "demo:0-12"), ("markets", "demo")])
def test_masks_do_not_change_the_solution_of_ratings_and_markets(task: str, source: str, tmp_path: Path) -> None:
    found = {}
    for trust in ("helpers", "local"):
        folder = tmp_path / trust
        folder.mkdir()
        dataset = read_all(task, source)
        (folder / "catalogue.json").write_text(dataset.vocabulary.to_json(), "utf-8")
        named = {"method": "ridge", "task": task, "run-id": "toy", "catalogue": str(folder / "catalogue.json")}
        unbounded = {"federation.norm-bound": 0.0}  # single replies are bounded in norm
        result = simulate(parse({**named, **unbounded, "privacy.trust": trust}), dataset, folder)
        assert result.status == "completed"
        found[trust] = solution(folder)
    sizes = {trust: [a for name, a in solved.items() if name.endswith("_sizes")] for trust, solved in found.items()}
    assert sizes["helpers"][0][2] < sizes["local"][0][2], "secure sums hold fewer items"
    for name, array in found["local"].items():
        if not name.endswith("_sizes"):
            np.testing.assert_allclose(found["helpers"][name], array, rtol=0.02, atol=2e-3, err_msg=name)


@pytest.mark.parametrize(
    ("task", "items", "started"),
    [
        ("ratings", {neighbours.ITEMS: np.arange(neighbours.MOST_MASKED_ITEMS)}, {}),
        ("markets", {blend.ITEMS: np.arange(blend.MOST_MASKED_ITEMS)}, {}),
        ("sessions", {slist.ITEMS: np.arange(slist.MOST_MASKED_ITEMS)}, {slist.STAGE: np.ones(1, np.int64)}),
        ("rules", dict.fromkeys((ease.TRIPLES, ease.PAIRS), np.arange(ease.MOST_TRIPLES)), {}),
    ],
)
@pytest.mark.parametrize("columns", [0, 1])
def test_the_largest_statistics_fit_a_secure_sum(task: str, items: Arrays, started: Arrays, columns: int) -> None:
    form, vocabulary = closed_form_of(task), read_all(task, "demo").vocabulary
    config = parse({"method": "ridge", "task": task})
    limited = form.limit_masked(form.start(config.task_run(TASKS[task], vocabulary)), columns)
    chosen = {name: a[: next(a[-1] for n, a in limited.items() if n.endswith("_sizes"))] for name, a in items.items()}
    sent = form.template({**limited, **chosen, **started})
    numbers = sum(a.size for a in (widen(sent) if columns else sent).values())
    assert 0.9 * MOST_NUMBERS < numbers <= MOST_NUMBERS


class KilledError(BaseException):
    """End of a process in the middle of a solve."""


@pytest.mark.parametrize("trust", ["local", "helpers"])
def test_a_solve_that_was_killed_is_repeated(trust: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum is closed once: helpers do not open it again, and no client is in it twice."""
    found, config, solve, calls = {}, summed("ridge", trust), RidgeStep.step, []

    def killed(self: RidgeStep, at: RoundContext, *rest: Any) -> Any:
        calls.append(at.number)
        solved = solve(self, at, *rest)
        if calls.count(at.number) == 1 and at.number == 2:
            raise KilledError
        return solved

    for name, step in (("whole", solve), ("killed", killed)):
        monkeypatch.setattr(RidgeStep, "step", step)
        federation = SumFederation(tmp_path / name, policy=POLICY.model_copy(update=ALLOWED))
        if name == "killed":
            with pytest.raises(KilledError):
                federation.run(config)
            federation.connect()
        assert federation.run(config, resume=name == "killed").status == "completed"
        found[name] = solution(tmp_path / name)
    assert calls == [1, 2, 2, 3]
    for name, array in found["whole"].items():
        np.testing.assert_array_equal(found["killed"][name], array, err_msg=name)


def test_clients_with_zero_statistics_change_nothing(tmp_path: Path) -> None:
    found, single = {}, (np.array([3]), np.array([5]), np.array([3]))
    for name, others in (("without", ()), ("with", tuple(Visitor(f"z-{k}", single) for k in range(3)))):
        config = configured("ridge", **of_sessions(tmp_path / name))
        result = simulate(config, Visits((*visits(12).units, *others), ITEMS), tmp_path / name)
        assert result.status == "completed"
        found[name] = solution(tmp_path / name)
    np.testing.assert_array_equal(found["with"][slist.CHOICE], found["without"][slist.CHOICE])
    for solved in found.values():
        assert np.isfinite(solved[slist.WEIGHTS]).all()


def test_a_reply_beyond_the_bound_is_left_out_and_its_client_is_named(tmp_path: Path) -> None:
    sessions = owners(6, SHARING.model_copy(update=ALLOWED)).sessions
    config = settings(tmp_path, "ridge")
    grid = LyingGrid(sessions, 6, "train", lies("hr20", 1)["100 x norm"][1], 6)
    result = run(grid, config, tmp_path)
    assert (result.status, result.rounds_done) == ("completed", 3)
    refused = [event.refused for event in RunDirectory(tmp_path, "toy").events() if isinstance(event, RoundEvent)]
    assert [one["client-5"].startswith("statistic 'ease_") for one in refused] == [True, True, False]
    assert "federation.norm-bound" in refused[-1]["client-5"]  # hits have no largest number
    others = owners(5, SHARING.model_copy(update=ALLOWED)).sessions
    (tmp_path / "others").mkdir()
    run(InProcessGrid(others, 5), settings(tmp_path / "others", "ridge"), tmp_path / "others")
    np.testing.assert_allclose(gram(solution(tmp_path)), gram(solution(tmp_path / "others")), atol=1e-5)


def test_statistics_of_many_records_are_within_the_bound(tmp_path: Path) -> None:
    whole = read_all("rules", "demo:0-46")
    parts = [replace(whole, units=units) for units in (whole.units[:40], *((home,) for home in whole.units[40:]))]
    (tmp_path / "catalogue.json").write_text(whole.vocabulary.to_json(), "utf-8")
    config = configured("ridge", rounds=3, catalogue=str(tmp_path / "catalogue.json"))
    simulate_clients(config, parts, tmp_path)
    rounds = [event for event in RunDirectory(tmp_path, config.run_id).events() if isinstance(event, RoundEvent)]
    assert [(one.answered, one.refused) for one in rounds] == [(7, {})] * 3
