"""Comparison of a finished run with each client alone, and metrics that stay on this machine."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client.data.read import partition, read_all
from client.training import alone as local_training
from client.training.comparison import MEASURED, Measured, from_document, paired_sums
from common.config.parse import configure_alone, is_comparable, parse
from common.config.run import RunConfig
from deploy.federation import compare as alone
from deploy.federation.compare import pair_clients, read_measured, train_alone, with_alone, with_local_metrics
from deploy.federation.start import ClientSpec
from deploy.simulation.state import simulate_measured
from server.record.result import Result

MEASURED_METRICS = {"hr20_shown": 0.5, "hr20_shown_frequency": 0.25}


def config(task: str, **options: Any) -> RunConfig:
    flat = {"task": task, "method": "fedavg", "rounds": 2, "federation.min-clients": 1, "federation.wait": 1}
    return parse({**flat, "run-id": "run", **options})


def trained(tmp_path: Path, task: str, data: str, **options: Any) -> tuple[Result, RunConfig, Any, dict[str, Measured]]:
    chosen, parts = config(task, **options), partition(read_all(task, data), 0)
    return (
        *simulate_measured(chosen, parts, tmp_path)[:1],
        chosen,
        parts,
        simulate_measured(chosen.model_copy(update={"run_id": "again"}), parts, tmp_path)[1],
    )


@pytest.mark.parametrize(
    ("task", "data", "units"),
    [("rules", "demo:0-30", "homes"), ("sessions", "demo:0-8", "visitors"), ("ratings", "demo:0-8", "raters")],
)
def test_a_run_is_compared_unit_by_unit_with_clients_alone(tmp_path: Path, task: str, data: str, units: str) -> None:
    result, chosen, parts, own = trained(tmp_path, task, data)
    assert result.verdict is not None
    assert (result.verdict.unit_name, result.verdict.alone) == (units, None)
    verdict = with_alone(result, chosen, parts, own).verdict
    assert verdict is not None
    assert verdict.alone is not None
    assert "alone" in verdict.text
    assert verdict.units == sum(value is not None for one in own.values() for value in one.units)


def test_without_a_measurement_or_a_verdict_the_result_is_unchanged(tmp_path: Path) -> None:
    result, chosen, parts, own = trained(tmp_path, "rules", "demo:0-12")
    assert with_alone(result, chosen, parts, {}) == result
    assert with_alone(replace(result, verdict=None), chosen, parts, own).verdict is None
    assert with_alone(replace(result, status="failed"), chosen, parts, own).verdict == result.verdict


def test_of_many_clients_some_are_drawn_and_compared_under_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result, chosen, parts, own = trained(tmp_path, "rules", "demo:0-30")
    every = train_alone(chosen, 2, {f"client-{k}": part for k, part in enumerate(parts)})
    having = [k for k in range(len(parts)) if any(value is not None for value in own[f"client-{k}"].units)]
    monkeypatch.setattr(alone, "MOST_CLIENTS", 2)
    verdict, drawn = with_alone(result, chosen, parts, own).verdict, alone.draw_clients(having, chosen.seed)
    pairs = pair_clients("rules", own, {f"client-{k}": every[f"client-{k}"] for k in drawn})
    assert verdict is not None
    assert len(drawn) == 2 < len(having) == verdict.units
    assert (verdict.wins_alone, verdict.mean_alone) == (pairs["alone"].wins, pytest.approx(pairs["alone"].mean))
    assert (verdict.helped, verdict.helped_of) == (pairs["both"].wins, 2)
    assert verdict.text.count(f"; alone: 2 of {len(having)} clients, drawn by the seed") == 1
    assert f"comparing with 2 of {len(having)} clients, drawn by the seed, alone" in capsys.readouterr().err


def test_clients_without_held_out_data_do_not_train_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result, chosen, parts, own = trained(tmp_path, "rules", "demo:0-30")
    verdict = with_alone(result, chosen, parts, own).verdict
    assert verdict is not None
    assert verdict.helped_of == verdict.units < len(parts)
    assert f"comparing with {verdict.units} clients alone" in capsys.readouterr().err


def test_the_comparison_takes_as_many_steps_as_the_run_whatever_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps are counted in the training itself; seconds of any length change nothing."""
    steps: dict[str, int] = {}

    def counted(options: Any, participants: Any) -> Any:
        for one in participants:
            steps[one.client] = steps.get(one.client, 0) + one.steps
        return train(options, participants)

    train = local_training.train
    monkeypatch.setattr(local_training, "train", counted)
    parts = partition(read_all("rules", "demo:0-12"), 0)
    learning = {f"client-{k}": part for k, part in enumerate(parts)}
    first = train_alone(config("rules"), 50, learning)
    monkeypatch.setattr("time.monotonic", iter(np.arange(0.0, 1e12, 1e6)).__next__)
    assert train_alone(config("rules"), 50, learning) == first
    local_steps = config("rules").method_options.local_steps
    assert set(steps.values()) == {2 * 50 * local_steps}


def test_in_closed_form_alone_is_what_own_sums_give(tmp_path: Path) -> None:
    result, chosen, parts, own = trained(tmp_path, "rules", "demo:0-60", method="ridge")
    verdict = with_alone(result, chosen, parts, own).verdict
    assert verdict is not None
    assert verdict.alone is not None
    assert verdict.helped_of == verdict.units
    assert verdict.mean_alone is not None
    assert verdict.mean_alone > 0, "a home alone has seen no rule of others"


def test_ctrl_c_ends_the_comparison_and_keeps_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result, chosen, parts, own = trained(tmp_path, "rules", "demo:0-12")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(alone, "train_alone", interrupt)
    assert with_alone(result, chosen, parts, own) == result
    assert "alone; Ctrl-C ends this, --no-alone omits it" in capsys.readouterr().err


def test_clients_alone_train_as_in_the_run() -> None:
    run = config("rules", **{"training.lr": 0.07, "federation.stop": 4})
    chosen = configure_alone(run, 7)
    assert (chosen.method, chosen.rounds, chosen.seed) == ("local", 7, run.seed)
    assert (chosen.method_options.lr, chosen.federation.stop) == (0.07, 0)
    assert chosen.task_options.validation_share == run.task_options.validation_share == 0.3


def test_runs_with_noise_and_runs_of_clients_alone_are_not_compared() -> None:
    assert is_comparable(config("rules"))
    assert not is_comparable(config("rules", method="local"))
    assert not is_comparable(config("rules", **{"privacy.unit": "client", "privacy.epsilon": 10.0}))


def test_metrics_that_stay_at_home_are_read_on_this_machine(tmp_path: Path) -> None:
    result, *_ = trained(tmp_path, "rules", "demo:0-12")
    spec = ClientSpec("client-0", "rules", "demo:0-12", tmp_path / "home", state=tmp_path / "state")
    folder = tmp_path / "state" / "client-0" / "abc" / "run"
    folder.mkdir(parents=True)
    document = {"metrics": MEASURED_METRICS, "weights": dict.fromkeys(MEASURED_METRICS, 2)}
    units = {"units": [0.5, 0.5, None], "rivals": {"relation frequency": [0.25, 0.25, None]}}
    (folder / MEASURED).write_text(json.dumps({**document, **units}))
    measured = read_measured([spec], "run")
    assert with_local_metrics(result, measured) == result, "the server has metrics"
    kept = with_local_metrics(replace(result, metrics={}, verdict=None), measured)
    assert (kept.metrics, kept.local) == ({}, MEASURED_METRICS)
    assert kept.verdict is not None
    assert kept.verdict.text == (
        "Too few homes (2) to say if they do better than 'relation frequency' (HR@20 shown .50)."
    )


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"mood": 1}'])
def test_a_damaged_measurement_counts_as_none(content: bytes) -> None:
    assert from_document(content) == Measured()


def test_units_are_paired_only_where_both_have_a_value() -> None:
    d = paired_sums(np.array([1.0, np.nan, 3.0]), np.array([0.5, 1.0, 3.5]), higher_is_better=False)
    np.testing.assert_allclose(d, [2, 0.0, 0.5, 1, 1])
    one, other = Measured(units=[0.5, None]), Measured(units=[0.25, 1.0])
    pairs = pair_clients("rules", {"a": one, "b": one}, {"a": other, "b": Measured(units=[1.0])})
    assert (pairs["alone"].units, pairs["both"].units) == (1, 1)


def test_a_unit_is_helped_if_it_does_better_than_by_both() -> None:
    shared = Measured(units=[0.5, 0.5, 0.5, None], rivals={"relation frequency": [0.2, 0.8, None, 0.1]})
    pairs = pair_clients("rules", {"a": shared}, {"a": Measured(units=[0.4, 0.4, 0.4, 0.4])})
    assert (pairs["alone"].wins, pairs["both"].wins, pairs["both"].losses, pairs["both"].units) == (3, 2, 1, 3)
