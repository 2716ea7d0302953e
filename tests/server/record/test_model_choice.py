"""Model of the best validated round: kept, compared with the last one, and used."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from common.arrays import sha256
from common.config.run import RunConfig
from common.errors import ConfigError
from common.tasks.registry import TASKS
from common.tasks.spec import Objective
from deploy.serving.models import load_checkpoint
from deploy.simulation.grid import simulate
from server.record.folder import BEST_MODEL, RunDirectory
from server.record.result import Best, Result
from tests.support.toys import CATALOGUE, configured, toy_dataset


@pytest.fixture(autouse=True)
def _chosen_by_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """Choose by the loss, which soon rises; lists of toy homes hardly change."""
    monkeypatch.setitem(TASKS._loaded, "rules", replace(TASKS["rules"], comparison=None, objective=Objective("loss")))


def train(tmp_path: Path, method: str = "fedavg", **options: Any) -> tuple[Result, RunDirectory]:
    catalogue = tmp_path / "catalogue.json"
    catalogue.write_text(CATALOGUE.to_json(), "utf-8")
    options = {"federation__min_clients": 1, "federation__wait": 0.1, "catalogue": str(catalogue), **options}
    config: RunConfig = configured(method, **options)
    return simulate(config, toy_dataset(4), tmp_path), RunDirectory(tmp_path, config.run_id)


def diverging(tmp_path: Path, **options: Any) -> tuple[Result, RunDirectory]:
    """Train at a rate at which the loss on validation data soon rises."""
    return train(tmp_path, rounds=12, lr=0.5, local_steps=5, federation__stop=3, **options)


def best_of(result: Result) -> Best:
    assert result.best is not None
    return result.best


def test_a_run_stops_early_and_its_best_model_is_kept_measured_and_used(tmp_path: Path) -> None:
    result, folder = diverging(tmp_path)
    best = best_of(result)
    assert result.status == "completed"
    assert result.reason.startswith("ended early: loss on validation data has not improved for 3 rounds")
    assert (best.split, best.round) == ("validation", result.rounds_done - 3)
    assert best.test.keys() >= {"loss", "auc"}
    assert best.test != result.metrics
    used, final = load_checkpoint(folder), load_checkpoint(folder, "final")
    assert used.about == f"round {best.round}, the best on validation data"
    assert sha256(used.model) == sha256(load_checkpoint(folder, str(best.round)).model)
    assert sha256(final.model) == result.model_sha256 != sha256(used.model)
    assert (used.is_default, final.is_default) == (True, False)


def test_a_last_round_that_is_the_best_is_measured_on_validation_data_too(tmp_path: Path) -> None:
    result, folder = train(tmp_path, rounds=3, lr=0.001, federation__stop=9)
    assert (best_of(result).round, best_of(result).split, best_of(result).test) == (3, "validation", {})
    assert sha256(load_checkpoint(folder).model) == result.model_sha256


@pytest.mark.parametrize("method", ["fedrep", "local", "ifca"])
def test_methods_whose_clients_have_layers_of_their_own_keep_the_last_model(tmp_path: Path, method: str) -> None:
    result, folder = train(tmp_path, method, rounds=3, federation__stop=9)
    assert result.status == "completed"
    assert not (folder.path / BEST_MODEL).exists()
    assert load_checkpoint(folder).is_default
    with pytest.raises(ConfigError, match="has no model of a best round"):
        load_checkpoint(folder, "best")


def test_a_run_without_validation_data_keeps_the_last_model(tmp_path: Path) -> None:
    _, folder = train(tmp_path, rounds=2)
    assert not (folder.path / BEST_MODEL).exists()
    assert load_checkpoint(folder).about == "round 2, the last"


@pytest.mark.parametrize("checkpoint", ["7", "-1", "newest", "../model", "²"])
def test_a_checkpoint_that_is_not_stored_is_refused(tmp_path: Path, checkpoint: str) -> None:
    _, folder = train(tmp_path, rounds=2)
    with pytest.raises(ConfigError, match=r"stores the rounds .*2; use one of them, best or final$"):
        load_checkpoint(folder, checkpoint)


def test_rounds_before_the_last_sum_have_no_model(tmp_path: Path) -> None:
    _, folder = train(tmp_path, "ridge")
    assert load_checkpoint(folder).about == "round 3, the last"
    folder.save_model({}, {"round": "1"})
    with pytest.raises(ConfigError, match=r"has its first model in round 3, not in round 1$"):
        load_checkpoint(folder)
    (folder.path / "result.json").unlink()
    with pytest.raises(ConfigError, match="not in round 1; continue it with --resume toy"):
        load_checkpoint(folder)


def test_early_stopping_needs_validation_data() -> None:
    with pytest.raises(
        ConfigError, match=r"federation\.stop=5 needs metrics, .* set tasks\.rules\.validation-share above 0"
    ):
        configured("fedavg", federation__stop=5, tasks__rules__validation_share=0.0)
    assert configured("fedavg", federation__stop=5).task_options.validation_share == 0.3
