"""Killed simulations whose replies are summed in blocks, and those that Ctrl-C ends."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from client.session import Session
from common.config.run import RunConfig
from deploy.simulation import blocks as population
from deploy.simulation.state import KeptState, simulate_measured
from tests.deploy.simulation.test_client_snapshot import simulated, snapshot
from tests.support.kills import killed_at
from tests.support.toys import toy_dataset


def test_blocks_are_judged_as_without_a_kill(
    settings: Callable[..., RunConfig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound on a reply's length follows from the lengths of the round before the kill."""
    doubtful: list[list[int]] = []
    find = population.find_doubtful

    def noted(*arguments: Any) -> list[int]:
        doubtful.append(find(*arguments))
        return doubtful[-1]

    monkeypatch.setattr(population, "find_doubtful", noted)
    monkeypatch.setattr(population, "FOLDED_BYTES", 0)
    config = settings("fedrule", federation__norm_bound=2.0)
    with killed_at() as steps:
        through = simulated(config, tmp_path / "through", 3)
    expected = [*doubtful]
    assert expected[2] != expected[1]
    doubtful.clear()
    with killed_at(len(steps.names) - steps.names[::-1].index("commit")):  # in the last round
        simulated(config, tmp_path / "killed", 3)
    assert simulated(config, tmp_path / "killed", 3, resume=True).model_sha256 == through.model_sha256
    assert doubtful == [*expected, expected[2]]


@pytest.mark.parametrize("step", ["train", "evaluate"])
def test_ctrl_c_stores_the_last_round_unless_clients_have_trained_since(
    step: str, settings: Callable[..., RunConfig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `--snapshot-every 5`, rounds 1 to 3 have no snapshot of their own."""
    config, rare = settings("fedrule"), KeptState(every=5)
    through = simulated(config, tmp_path / "through")

    def interrupted(session: Session, request: Any) -> Any:
        if request.round == 2:
            raise KeyboardInterrupt
        return work(session, request)

    name = {"train": "participant", "evaluate": "evaluate"}[step]
    work = getattr(Session, name)
    with monkeypatch.context() as patch:
        patch.setattr(Session, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            simulated(config, tmp_path, state=rare)
    assert snapshot(tmp_path, 1).exists() == (step == "train")
    assert simulated(config, tmp_path, resume=True).model_sha256 == through.model_sha256


@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 3)])
def test_any_number_of_workers_continues_the_run_of_any_other(
    before: int, after: int, settings: Callable[..., RunConfig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(population, "FOLDED_BYTES", 0)
    config, data = settings("fedrule"), [toy_dataset(k) for k in (1, 2, 3, 2, 3)]

    def trained(runs: Path, workers: int, *, resume: bool = False) -> str:
        changed = config.model_copy(update={"resume": resume})
        return simulate_measured(changed, data, runs, together=2, workers=workers)[0].model_sha256

    with killed_at() as steps:
        through = trained(tmp_path / "through", 1)
    with killed_at(len(steps.names) - steps.names[::-1].index("commit")):  # in the last round
        trained(tmp_path / "killed", before)
    assert trained(tmp_path / "killed", after, resume=True) == through
