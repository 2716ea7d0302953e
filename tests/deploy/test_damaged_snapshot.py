"""Damaged and foreign state of a simulation's clients is refused by name, never replaced by a fresh start."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from client.session import Session
from common.config.run import RunConfig
from common.errors import StateError
from deploy.simulation import blocks as population
from deploy.simulation.state import KeptState, simulate_measured
from tests.deploy.simulation.test_client_snapshot import KEPT, simulated, snapshot
from tests.support.kills import killed_at
from tests.support.toys import toy_dataset


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def alter(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


def link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


@pytest.mark.parametrize("name", ["0.safetensors", "documents.safetensors", "manifest.json"])
@pytest.mark.parametrize("harm", [truncate, alter, link, os.unlink])
def test_a_damaged_state_is_refused_by_name(
    name: str, harm: Callable[[Path], None], settings: Callable[..., RunConfig], tmp_path: Path
) -> None:
    simulated(settings("fedrule"), tmp_path, state=KEPT, rounds=1)
    harm(snapshot(tmp_path, 1) / name)
    with pytest.raises(StateError, match=rf"clients/1/{name} .*new --run-id, or use --resume toy --forget-state"):
        simulated(settings("fedrule"), tmp_path, rounds=2, resume=True)


def test_a_linked_folder_is_refused(settings: Callable[..., RunConfig], tmp_path: Path) -> None:
    simulated(settings("fedrule"), tmp_path, state=KEPT)
    link(tmp_path / "toy" / "clients")
    with pytest.raises(StateError, match="toy/clients is no folder"):
        simulated(settings("fedrule"), tmp_path, rounds=4, resume=True)


def test_foreign_snapshots_are_refused(settings: Callable[..., RunConfig], tmp_path: Path) -> None:
    config = settings("fedrule")
    for name, options in {"one": {}, "other": {"seed": 1}, "named": {"run_id": "else"}}.items():
        simulated(config, tmp_path / name, state=KEPT, **options)
    own, place = snapshot(tmp_path / "one"), tmp_path / "kept"
    own.rename(place)
    foreign = {snapshot(tmp_path / "other"): "state of the server", tmp_path / "named/else/clients/3": "run"}
    for other, noun in foreign.items():
        other.rename(own)
        with pytest.raises(StateError, match=rf"manifest\.json is of another {noun};"):
            simulated(config, tmp_path / "one", rounds=4, resume=True)
        own.rename(other)
    place.rename(own)
    changed = config.model_copy(update={"rounds": 4, "resume": True})
    with pytest.raises(StateError, match="of another set of clients or of data"):
        simulate_measured(changed, [toy_dataset(1), toy_dataset(3), toy_dataset(3)], tmp_path / "one")
    assert simulated(config, tmp_path / "one", rounds=4, resume=True).rounds_done == 4


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
