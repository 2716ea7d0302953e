"""Comparison of a finished run with each client alone, and metrics that stay on this machine."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client.data.read import partition, read_all
from client.training.comparison import MEASURED, Measured, from_document, paired_sums
from common.config.parse import configure_alone, is_comparable, parse
from common.config.run import RunConfig
from deploy.federation import compare as alone
from deploy.federation.compare import pair_clients, read_measured, train_alone, with_alone, with_local_metrics
from deploy.federation.start import ClientSpec
from deploy.simulation.state import simulate_measured
from server.record.result import Result


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
    _, every = train_alone(chosen, 2, parts, 60.0)
    monkeypatch.setattr(alone, "MOST_CLIENTS", 12)
    verdict, drawn = with_alone(result, chosen, parts, own).verdict, alone.draw_clients(len(parts), chosen.seed)
    pairs = pair_clients("rules", own, {f"client-{k}": every[f"client-{k}"] for k in drawn})
    assert verdict is not None
    assert len(drawn) == 12
    assert (verdict.wins_alone, verdict.mean_alone) == (pairs.wins, pytest.approx(pairs.mean))
    assert verdict.text.count(f"12 of {len(parts)} clients alone") == 1
    assert f"comparing with 12 clients alone of {len(parts)}, drawn by the seed" in capsys.readouterr().err


def test_ctrl_c_ends_the_comparison_and_keeps_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result, chosen, parts, own = trained(tmp_path, "rules", "demo:0-12")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(alone, "train_alone", interrupt)
    assert with_alone(result, chosen, parts, own) == result
    assert "comparing with each client alone, for at most 60 s" in capsys.readouterr().err


def test_the_time_of_the_comparison_is_limited(tmp_path: Path) -> None:
    parts = partition(read_all("rules", "demo:0-12"), 0)
    done, measured = train_alone(config("rules"), 500, parts, 0.0)
    assert done < 500
    assert measured.keys() == {f"client-{k}" for k in range(len(parts))}


def test_clients_alone_train_as_in_the_run_without_sums_of_others() -> None:
    run = config("rules", **{"tasks.rules.count-offset": True, "training.lr": 0.07, "federation.stop": 4})
    chosen = configure_alone(run, 7, "demo")
    assert (chosen.method, chosen.rounds, chosen.seed) == ("local", 7, run.seed)
    assert (chosen.method_options.lr, chosen.task_options.count_offset, chosen.federation.stop) == (0.07, False, 0)
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
    document = {"metrics": {"hr20": 0.5, "hr20_frequency": 0.25}, "weights": {"hr20": 2, "hr20_frequency": 2}}
    units = {"units": [0.5, 0.5, None], "simple": [0.25, 0.25, None]}
    (folder / MEASURED).write_text(json.dumps({**document, **units}))
    measured = read_measured([spec], "run")
    assert with_local_metrics(result, measured) == result, "the server has metrics"
    kept = with_local_metrics(replace(result, metrics={}, verdict=None), measured)
    assert (kept.metrics, kept.local) == ({}, {"hr20": 0.5, "hr20_frequency": 0.25})
    assert kept.verdict is not None
    assert kept.verdict.text == "Too few homes (2) to compare with the simple baseline 'relation frequency' (.25)."


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"mood": 1}'])
def test_a_damaged_measurement_counts_as_none(content: bytes) -> None:
    assert from_document(content) == Measured()


def test_units_are_paired_only_where_both_have_a_value() -> None:
    d = paired_sums(np.array([1.0, np.nan, 3.0]), np.array([0.5, 1.0, 3.5]), higher_is_better=False)
    np.testing.assert_allclose(d, [2, 0.0, 0.5, 1, 1])
    one, other = Measured(units=[0.5, None]), Measured(units=[0.25, 1.0])
    assert pair_clients("rules", {"a": one, "b": one}, {"a": other, "b": Measured(units=[1.0])}).units == 1
