"""The traffic demo shows where repair, the federation and the correction pay; elsewhere it says level."""

from pathlib import Path

import pytest

from client.data.read import partition, read_all
from client.tasks.traffic.data.generator import FAULTY, SOUND
from common.config.parse import parse
from deploy.federation.compare import with_alone
from deploy.simulation.state import simulate_measured
from server.record.events import RoundEvent
from server.record.folder import RunDirectory
from server.record.result import Result


def trained(tmp_path: Path, data: str, repair: str = "auto", *, alone: bool = True) -> Result:
    """Return the result of a run whose clients share sums of their past; if `alone`, compared with each client alone."""
    options = {"federation.min-clients": 1, "federation.wait": 1}
    options |= {"tasks.traffic.repair": repair, "tasks.traffic.history": 30, "tasks.traffic.hidden": 8}
    config = parse({"task": "traffic", "method": "fedstl", "rounds": 2, "run-id": "r1", **options})
    parts = partition(read_all("traffic", data), 0)
    result, own = simulate_measured(config, parts, tmp_path, together=len(parts))
    return with_alone(result, config, parts, own) if alone else result


def kind(result: Result, fault: int) -> tuple[float, float]:
    """Return the mean squared error of the sites with a fault, before and after the correction."""
    clients = [result.clients[name].metrics for name in result.clients if int(name.partition("-")[2]) % 3 == fault]
    before, after = (sum(one[key] for one in clients) / len(clients) for key in ("mse", "teacher_mse"))
    return before, after


def verdict(result: Result) -> str:
    assert result.verdict is not None
    return result.verdict.text


def test_clients_leave_models_that_broken_histories_mislead_and_the_correction_pays(tmp_path: Path) -> None:
    result = trained(tmp_path, "demo:breaking:0-12", repair="none")
    assert "4 weekly profile, by their own validation data" in verdict(result)
    assert result.verdict is not None
    assert result.verdict.mean_alone is not None
    assert result.verdict.mean_alone < 0, "the error is lower than alone"
    assert result.verdict.final is not None
    assert result.verdict.final < 0.7 * result.metrics["mse"], "what clients use is better than their models"
    before, after = kind(result, FAULTY)
    assert after < 0.8 * before
    before, after = kind(result, SOUND)
    assert after == pytest.approx(before, rel=0.05), "nothing to correct"
    lines = [event for event in RunDirectory(tmp_path, "r1").events() if isinstance(event, RoundEvent)]
    assert [line.refused for line in lines] == [{}] * 2, "updates from two weeks of data are longer, and honest"


def test_repair_removes_most_of_the_error_from_broken_histories(tmp_path: Path) -> None:
    as_read, repaired = (
        kind(trained(tmp_path / repair, "demo:breaking:0-6", repair, alone=False), FAULTY)[0]
        for repair in ("none", "auto")
    )
    assert repaired < 0.4 * as_read


def test_where_no_sensor_breaks_the_verdict_says_level(tmp_path: Path) -> None:
    assert verdict(trained(tmp_path, "demo:0-12")).startswith("The federation makes no clear difference: ")
