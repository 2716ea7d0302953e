"""Populations whose replies are summed block by block, against single replies."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client.data.read import partition, read_all
from client.training.local_round import TrainedCohort
from common.arrays import norm
from common.config.parse import parse
from common.config.run import RunConfig
from common.contribution import Contribution
from common.errors import RunError
from deploy.simulation import blocks as population
from deploy.simulation.grid import simulate
from deploy.simulation.state import simulate_measured
from server.record.folder import RunDirectory
from server.round import intake
from tests.support.sensors import rounds_of
from tests.support.toys import METHODS, toy_dataset

Settings = Callable[..., RunConfig]
ALL = (*METHODS,)


@pytest.fixture
def folds(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    return lambda on: monkeypatch.setattr(population, "FOLDED_BYTES", 0 if on else 10**12)


def both(config: RunConfig, data: Any, folder: Path, folds: Callable[[bool], None]) -> list[Path]:
    """Train with single replies and with sums, in blocks of four; return the folders of the runs."""
    for on in (False, True):
        folds(on)
        simulate(config, data, folder / str(on), together=4)
    return [folder / str(on) for on in (False, True)]


def assert_equal_models(folders: list[Path]) -> None:
    single, summed = (RunDirectory(folder, "toy").load_model()[0] for folder in folders)
    assert norm(summed) == pytest.approx(norm(single), rel=1e-5)
    for name, a in single.items():
        np.testing.assert_allclose(summed[name], a, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("method", ALL)
def test_sums_train_the_model_of_single_replies(
    method: str, settings: Settings, tmp_path: Path, folds: Callable[[bool], None]
) -> None:
    folders = both(settings(method), toy_dataset(7), tmp_path, folds)
    assert_equal_models(folders)
    single, summed = (rounds_of(folder) for folder in folders)
    for one, other in zip(single, summed, strict=True):
        assert other.loss == pytest.approx(one.loss, rel=1e-5)
        assert (other.answered, other.bytes_up) == (one.answered, one.bytes_up)


@pytest.mark.parametrize(("task", "method"), [("ratings", "fedrule"), ("sessions", "fedga"), ("traffic", "fedrep")])
def test_sums_train_the_models_of_all_tasks(
    task: str, method: str, tmp_path: Path, folds: Callable[[bool], None]
) -> None:
    flat = {"run-id": "toy", "task": task, "method": method, "rounds": 2, "privacy.unit": "none"}
    assert_equal_models(both(parse(flat), read_all(task, "demo:0-5"), tmp_path, folds))


def test_sampled_clients_keep_their_state(settings: Settings, tmp_path: Path, folds: Callable[[bool], None]) -> None:
    config = settings("fedrule", rounds=4, federation__cohort=0.5, federation__min_replies=2)
    assert_equal_models(both(config, toy_dataset(12), tmp_path, folds))


def test_a_long_update_is_left_out_as_a_single_reply_and_its_state_stays(
    settings: Settings, tmp_path: Path, folds: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One home has rules that no other has, so that its gradient is far longer than a bound of 1.2 allows."""
    config = settings("fedrule", rounds=3, federation__norm_bound=1.2)
    folders = both(config, toy_dataset(9), tmp_path, folds)
    left_out = [[sorted(event.refused) for event in rounds_of(folder)] for folder in folders]
    assert left_out[0] == left_out[1]
    assert any(left_out[0])
    assert_equal_models(folders)


def test_a_client_that_diverges_is_left_out_of_its_block(
    settings: Settings, tmp_path: Path, folds: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    train = population.train_together

    def spoilt(*arguments: Any, **options: bool) -> TrainedCohort:
        trained = train(*arguments, **options)
        for tensor in trained.update.values():
            tensor[1] = float("nan")
        trained.counted.remove(1)
        return trained

    monkeypatch.setattr(population, "train_together", spoilt)
    folds(True)
    result = simulate(settings("fedrule"), toy_dataset(8), tmp_path, together=4)
    assert [(event.asked, event.answered) for event in rounds_of(tmp_path)] == [(8, 6)] * 3
    assert result.status == "completed"


@pytest.mark.parametrize(
    ("method", "workers", "options"),
    [("fedrule", 2, {}), ("fedrep", 3, {"federation__cohort": 0.6}), ("fedga", 3, {})],
)
def test_the_number_of_workers_changes_no_bit(
    method: str,
    workers: int,
    options: dict[str, float],
    settings: Settings,
    tmp_path: Path,
    folds: Callable[[bool], None],
) -> None:
    """Of eleven homes in blocks of four; one home's update is too long for the bound, so that its state is kept alone."""
    folds(True)
    config = settings(method, rounds=4, federation__norm_bound=1.2, **options)
    single, shared = (
        simulate(config, toy_dataset(11), tmp_path / str(count), together=4, workers=count) for count in (1, workers)
    )
    assert (single.model_sha256, single.metrics) == (shared.model_sha256, shared.metrics)
    first, second = ([(e.loss, e.refused, e.bytes_up) for e in rounds_of(tmp_path / str(k))] for k in (1, workers))
    assert first == second


def test_large_sums_are_shared_by_blocks_with_any_number_of_workers(
    settings: Settings, tmp_path: Path, folds: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eleven homes in blocks of two: six blocks, three sums."""
    folds(True)
    seen: list[int] = []
    add_up = intake.add_up

    def watched(replies: Any, *arguments: Any) -> Contribution:
        seen.append(len({id(reply.train.block) for reply in replies}))
        return add_up(replies, *arguments)

    monkeypatch.setattr(intake, "add_up", watched)
    apart = simulate(settings("fedrule"), toy_dataset(11), tmp_path / "apart", together=2)
    monkeypatch.setattr(population, "_sum_bytes", lambda *_: population.SUMS_BYTES // 3)
    shared = [
        simulate(settings("fedrule"), toy_dataset(11), tmp_path / str(count), together=2, workers=count)
        for count in (1, 3)
    ]
    assert seen == [6] * 3 + [3] * 6
    assert len({result.model_sha256 for result in shared}) == 1
    models = [RunDirectory(tmp_path / name, "toy").load_model()[0] for name in ("apart", "1")]
    assert norm(models[0]) == pytest.approx(norm(models[1]), rel=1e-6)
    assert shared[0].metrics == pytest.approx(apart.metrics, rel=1e-5)


def test_a_worker_that_dies_ends_the_run_by_name(
    settings: Settings, tmp_path: Path, folds: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    sum_up, parent = TrainedCohort.sum_up, os.getpid()

    def dies(trained: TrainedCohort, number: int, *rest: Any) -> Any:
        if number == 1 and os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return sum_up(trained, number, *rest)

    monkeypatch.setattr(TrainedCohort, "sum_up", dies)
    folds(True)
    with pytest.raises(RunError, match="worker 2 of 2, with 1 blocks: the process was ended by signal 9"):
        simulate(settings(), toy_dataset(11), tmp_path, together=4, workers=2)


def test_clients_that_several_processes_evaluate_have_the_same_metrics_and_documents(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(population, "FEWEST", 5)
    team, made = population.TeamOfCopies, list[int]()
    monkeypatch.setattr(population, "TeamOfCopies", lambda shards, run: made.append(len(shards)) or team(shards, run))
    config, parts = settings("fedrule", rounds=2), partition(toy_dataset(7), 0)
    (one, own), (both, shared) = (
        simulate_measured(config, parts, tmp_path / str(count), together=4, workers=count) for count in (1, 2)
    )
    assert (one.metrics, one.clients) == (both.metrics, both.clients)
    assert own == shared
    assert set(made) == {2}
    assert all(measured.metrics for measured in shared.values())


def test_shards_of_one_round_have_changed(
    settings: Settings, tmp_path: Path, folds: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, states = population.Population, list[int]()
    end = kind.end
    monkeypatch.setattr(kind, "end", lambda shards: states.append(len([*(shards.dump() or ())])) or end(shards))
    folds(True)
    simulate(settings("fedrule", rounds=1), toy_dataset(11), tmp_path, together=4, workers=2)
    assert states[-1], "a snapshot has the state of the round"
