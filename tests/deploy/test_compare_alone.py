"""`federation.compare-alone`: clients measure a model of their own data alone, and the verdict uses it."""

from pathlib import Path
from typing import Any

import pytest

from client.data.read import partition, read_all
from client.owner.policy import Policy
from client.session import Session
from client.training import alone
from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import RunError
from common.metrics import USED
from common.options import Scalar
from common.tasks.registry import TASKS
from common.wire.messages import EvaluateReply
from deploy.federation.compare import with_alone
from deploy.pages.statement import noise_cost
from deploy.simulation import clients as simulated_session
from deploy.simulation.grid import simulate
from deploy.simulation.state import simulate_measured
from server.record.folder import RunDirectory
from server.record.result import Result, Verdict

DATA = {"rules": "demo:0-30", "sessions": "demo:0-8", "ratings": "demo:0-8"}


def config(task: str, compares: bool, **options: Any) -> RunConfig:
    flat = {"task": task, "method": "fedavg", "rounds": 2, "federation.min-clients": 1, "federation.wait": 1}
    return parse({**flat, "federation.compare-alone": compares, "run-id": f"compares-{compares}", **options})


def simulated(tmp_path: Path, task: str, compares: bool, **options: Any) -> Result:
    parts = partition(read_all(task, DATA[task]), 0)
    return simulate_measured(config(task, compares, **options), parts, tmp_path)[0]


def verdict_of(result: Result) -> Verdict:
    assert result.verdict is not None
    return result.verdict


@pytest.mark.parametrize("task", DATA)
def test_the_verdict_is_that_of_a_comparison_in_one_process(task: str, tmp_path: Path) -> None:
    parts = partition(read_all(task, DATA[task]), 0)
    chosen = config(task, False)
    result, own = simulate_measured(chosen, parts, tmp_path)
    here = verdict_of(with_alone(result, chosen, parts, own))
    compared = simulated(tmp_path, task, True)
    sent = verdict_of(compared)
    assert sent.text == here.text
    assert (sent.alone, sent.mean_alone, sent.se_alone) == pytest.approx((here.alone, here.mean_alone, here.se_alone))
    assert sent.wins_alone == here.wins_alone
    assert compared.metrics == result.metrics, "the metrics of models alone are in the verdict only"
    assert compared.model_sha256 == result.model_sha256
    assert with_alone(compared, chosen, parts, own) == compared, "what clients compared is not compared again"
    events = (RunDirectory(tmp_path, compared.run).path / "metrics.jsonl").read_text()
    assert "alone_" not in events


def test_without_time_for_all_steps_there_is_no_comparison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alone, "DEADLINE_SHARE", -1.0)
    found = verdict_of(simulated(tmp_path, "rules", True))
    assert (found.alone, "alone" in found.text) == (None, False)


def test_a_client_that_could_not_compare_leaves_the_others_uncompared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the slowest clients would be missing in the verdict."""
    measure = alone.measure_alone
    failed: list[str] = []

    def fail_once(config: Any, vocabulary: Any, learners: Any, *rest: Any) -> Any:
        if not failed:
            failed.extend(learners)
            raise RunError("late")
        return measure(config, vocabulary, learners, *rest)

    monkeypatch.setattr(alone, "measure_alone", fail_once)
    found = verdict_of(simulated(tmp_path, "rules", True))
    assert (found.alone, len(failed)) == (None, 1)
    assert f"; not compared with alone, unfinished for 1 of {found.units} homes" in found.text


@pytest.fixture
def replies(monkeypatch: pytest.MonkeyPatch) -> list[EvaluateReply]:
    """Return the replies to evaluations of the sessions that follow."""
    sent: list[EvaluateReply] = []
    evaluate = Session.evaluate

    def recorded(session: Session, request: Any) -> EvaluateReply:
        sent.append(evaluate(session, request))
        return sent[-1]

    monkeypatch.setattr(Session, "evaluate", recorded)
    return sent


def refuse_to_train(*_: object) -> None:
    pytest.fail("a model was trained alone")


def test_without_the_option_nobody_trains_alone(
    replies: list[EvaluateReply], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alone, "measure_alone", refuse_to_train)
    assert verdict_of(simulated(tmp_path, "rules", False)).alone is None
    assert {key for reply in replies for key in reply.paired} == {"simple"}


def test_an_owner_who_shares_no_metrics_sends_no_comparison(
    replies: list[EvaluateReply], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alone, "measure_alone", refuse_to_train)
    monkeypatch.setattr(
        simulated_session, "simulated_policy", lambda: Policy(allow_counts="clear", share_metrics="never")
    )
    assert simulated(tmp_path, "rules", True).verdict is None
    assert all(not (reply.metrics or reply.weights or reply.paired) for reply in replies)


def test_under_noise_nothing_is_compared_even_where_metrics_are_shared(
    replies: list[EvaluateReply], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alone, "measure_alone", refuse_to_train)
    simulated(tmp_path, "rules", True, **{"privacy.unit": "client", "privacy.epsilon": 10.0})
    assert any(reply.metrics for reply in replies)
    assert not any(key.startswith("alone") for reply in replies for key in (*reply.metrics, *reply.paired))


def test_a_client_that_cannot_train_alone_still_sends_its_metrics(
    replies: list[EvaluateReply], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RunError("no")

    monkeypatch.setattr(alone, "measure_alone", fail)
    assert verdict_of(simulated(tmp_path, "rules", True)).alone is None
    assert any(reply.metrics for reply in replies)


def test_a_repeated_request_is_answered_without_training_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[str] = []
    measure_alone, evaluate = alone.measure_alone, Session.evaluate

    def counted(config: Any, vocabulary: Any, learners: Any, *rest: Any) -> Any:
        trained.extend(learners)
        return measure_alone(config, vocabulary, learners, *rest)

    def twice(session: Session, request: Any) -> EvaluateReply:
        first, second = evaluate(session, request), evaluate(session, request)
        assert first.metrics == second.metrics
        return second

    monkeypatch.setattr(alone, "measure_alone", counted)
    monkeypatch.setattr(Session, "evaluate", twice)
    assert verdict_of(simulated(tmp_path, "rules", True)).alone is not None
    assert len(trained) == len(set(trained)) > 1


@pytest.mark.parametrize(("task", "data"), [("rules", "demo:0-12"), ("sessions", "demo:0-6"), ("traffic", "demo:0-2")])
def test_a_run_with_noise_states_model_floor_and_what_clients_use(tmp_path: Path, task: str, data: str) -> None:
    about = {"method": "fedavg", "task": task, "run-id": "r", "rounds": 1, "federation.min-clients": 1}
    noise = {"privacy.unit": "client", "privacy.epsilon": 1.0, f"tasks.{task}.validation-share": 0.3}
    result = simulate(parse({**about, **noise}), read_all(task, data), tmp_path, noise_seed=0)
    metric = TASKS[task].objective.metric
    used, baselines = f"{USED.prefix}{metric}", [baseline[metric] for baseline in TASKS[task].baselines.values()]
    measured = [own.metrics for own in result.clients.values() if metric in own.metrics]
    assert measured
    assert all(
        own[used] in (own[metric], *(own[baseline] for baseline in baselines if baseline in own)) for own in measured
    )
    assert min(own[used] for own in measured) <= result.metrics[used] <= max(own[used] for own in measured)
    assert "as clients use it" in noise_cost(result)
    assert result.verdict is not None
    assert not result.verdict.uses  # exact numbers are not sent beside noise


@pytest.mark.parametrize(
    ("task", "data", "options"),
    [
        ("rules", "demo:0-12", {"method": "ridge"}),
        ("sessions", "demo:0-12", {"method": "ridge"}),
        ("sessions", "demo:0-6", {"method": "local"}),
        ("markets", "demo:0-2", {"method": "ridge", "tasks.markets.protocol": "pairs"}),
        ("ratings", "demo:0-12", {"method": "ridge"}),
        ("traffic", "demo:0-2", {"method": "fedavg", "rounds": 1}),
    ],
)
def test_a_run_without_noise_counts_what_clients_use(
    tmp_path: Path, task: str, data: str, options: dict[str, Scalar]
) -> None:
    about = {"task": task, "run-id": "r", "rounds": 3, "federation.min-clients": 1, **options}
    config = parse({**about, f"tasks.{task}.validation-share": 0.3})
    result = simulate(config, read_all(task, data), tmp_path)
    metric, verdict = TASKS[task].objective.metric, result.verdict
    assert verdict is not None
    assert sum(verdict.uses.values()) == verdict.units
    model = "personalized model" if options["method"] == "local" else "shared model"
    assert next(iter(verdict.uses)) == model
    assert verdict.final == result.metrics[f"{USED.prefix}{metric}"]
    assert f"of {verdict.units} {verdict.unit_name} use" in verdict.text
