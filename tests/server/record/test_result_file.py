"""Files of results: all clients in result.json, or quantiles beside a table of many clients."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from common.errors import DataError, StateError
from common.options import Scalar
from deploy.simulation.grid import InProcessGrid
from server.record import folder as result_file
from server.record import folder as tensor_file
from server.record.folder import RunDirectory
from server.record.result import ClientResult, Result
from server.run import run
from tests.support.hubs import settings
from tests.support.owners import owners
from tests.support.sensors import rounds_of


def finished(folder: Path, clients: int = 5, **options: Scalar) -> Result:
    folder.mkdir(exist_ok=True)
    config = settings(folder, "fedavg", **{"rounds": 2, "evaluate_every": 1, **options})
    return run(InProcessGrid(owners(clients).sessions, 1), config, folder)


def test_results_of_many_clients_stand_in_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = finished(tmp_path / "few")
    assert not (tmp_path / "few" / "toy" / result_file.CLIENTS).exists()
    monkeypatch.setattr(result_file, "MANY", 4)
    many = finished(tmp_path / "many")
    stored = RunDirectory(tmp_path / "many", "toy").result()
    assert stored is not None
    assert [*stored.clients] == [*many.clients] == [*few.clients]
    for name, one in many.clients.items():
        assert stored.clients[name].examples == one.examples
        assert stored.clients[name].metrics == pytest.approx(one.metrics, rel=1e-6)
    assert replace(stored, clients={}, spread={}) == replace(many, clients={}, spread={})
    document = json.loads((tmp_path / "many" / "toy" / "result.json").read_text("utf-8"))
    assert document["clients"] == {}
    losses = [one.metrics["loss"] for one in many.clients.values()]
    assert document["spread"]["loss"]["p50"] == pytest.approx(np.median(losses), rel=1e-6)
    assert document["spread"]["examples"]["max"] == max(one.examples for one in many.clients.values())


def test_a_client_without_a_metric_keeps_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_file, "MANY", 1)
    result = finished(tmp_path)
    clients = {"a": ClientResult(examples=3, metrics={"loss": 0.5}), "b": ClientResult(examples=0, metrics={})}
    folder = RunDirectory(tmp_path, "toy")
    folder.write_result(replace(result, clients=clients))
    stored = folder.result()
    assert stored is not None
    assert stored.clients == clients


def test_a_missing_or_damaged_table_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_file, "MANY", 4)
    finished(tmp_path)
    directory, table = RunDirectory(tmp_path, "toy"), tmp_path / "toy" / result_file.CLIENTS
    content = table.read_bytes()
    table.write_bytes(content[:-3])
    with pytest.raises(StateError, match=r"clients\.safetensors cannot be read"):
        directory.result()
    table.write_bytes(tensor_file.dump_tensors({"other": np.zeros(1)}, {}))
    with pytest.raises(DataError, match=r"clients\.safetensors is no table of clients"):
        directory.result()
    table.unlink()
    with pytest.raises(StateError, match=r"clients\.safetensors cannot be read"):
        directory.result()


def test_a_share_of_the_clients_measures_and_all_measure_the_final_model(tmp_path: Path) -> None:
    result = finished(tmp_path, 6, rounds=4, federation__evaluate_share=0.5)
    whole = finished(tmp_path / "whole", 6, rounds=4)
    assert result.model_sha256 == whole.model_sha256
    assert all(one.metrics for one in result.clients.values())
    assert result.metrics == whole.metrics
    drawn, all_ = ([event.metrics["loss"] for event in rounds_of(path)] for path in (tmp_path, tmp_path / "whole"))
    assert drawn[-1] == all_[-1]
    assert all(a != b for a, b in zip(drawn[:-1], all_[:-1], strict=True))
