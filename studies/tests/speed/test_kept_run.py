"""A run is described with every round, whether it finished or was stopped; a failed one is refused."""

from dataclasses import replace
from pathlib import Path

import pytest

from client.data.read import read_all
from common.config.parse import parse
from common.errors import ConfigError
from deploy.simulation.grid import simulate
from server.record.folder import RunDirectory
from studies.speed.kept_run import describe


def test_finished_and_stopped_runs_are_described_and_a_failed_one_is_refused(tmp_path: Path) -> None:
    data = read_all("rules", "demo:0-20")
    catalogue = tmp_path / "catalogue.json"
    catalogue.write_text(data.vocabulary.to_json(), "utf-8")
    given = {"run-id": "small", "rounds": 3, "task": "rules", "method": "fedrule", "evaluate-every": 2}
    result = simulate(parse({**given, "catalogue": str(catalogue)}), data, tmp_path)
    found = describe(tmp_path / "small")
    assert len(found["losses"]) == found["rounds"] == 3
    assert [*found["measured"]] == [2, 3]
    assert (found["metrics"], found["model_sha256"]) == (result.metrics, result.model_sha256)
    RunDirectory(tmp_path, "small").write_result(replace(result, status="failed"))
    with pytest.raises(ConfigError, match="failed"):
        describe(tmp_path / "small")
    (tmp_path / "small" / "result.json").unlink()
    stopped = describe(tmp_path / "small")
    assert stopped == {**found, "status": "stopped", "model_sha256": "", "metrics": found["measured"][3]}
