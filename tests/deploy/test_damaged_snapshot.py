"""Damaged and foreign state of a simulation's clients is refused by name, never replaced by a fresh start."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from common.config.run import RunConfig
from common.errors import StateError
from deploy.simulation.state import simulate_measured
from tests.deploy.simulation.test_client_snapshot import KEPT, simulated, snapshot
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
