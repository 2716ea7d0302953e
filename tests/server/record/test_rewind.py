"""Return of a run to an earlier round."""

from pathlib import Path

import pytest

from client.state import MemoryStore
from common.config.run import RunConfig
from common.errors import ConfigError
from deploy.simulation.grid import InProcessGrid
from server.record.events import RoundEvent
from server.record.folder import RunDirectory, spaced_rounds
from server.record.model_choice import BEST_MODEL
from server.record.rewind import go_back
from server.run import run
from tests.support.toy_sessions import toy_sessions
from tests.support.toys import CATALOGUE, configured


def configuration(folder: Path, **options: bool) -> RunConfig:
    path = folder / "catalogue.json"
    path.write_text(CATALOGUE.to_json())
    return configured("fedavg", rounds=6, catalogue=str(path), tasks__rules__validation_share=0.3, **options)


def test_a_run_goes_on_from_an_earlier_round_as_it_did_before(tmp_path: Path) -> None:
    folder, sessions = RunDirectory(tmp_path, "toy"), toy_sessions([MemoryStore() for _ in range(3)])
    first = run(InProcessGrid(sessions, 1), configuration(tmp_path), tmp_path)
    assert folder.checkpoints.rounds() == [1, 2, 3, 4, 5, 6]
    go_back(folder, 3)
    rounds = [event.round for event in folder.events() if isinstance(event, RoundEvent)]
    assert (rounds, folder.checkpoints.rounds(), folder.result()) == ([1, 2, 3], [1, 2, 3], None)
    again = run(InProcessGrid(sessions, 1), configuration(tmp_path, resume=True), tmp_path)
    assert (again.status, again.model_sha256) == ("completed", first.model_sha256)
    assert [event.round for event in folder.events() if isinstance(event, RoundEvent)] == [1, 2, 3, 4, 5, 6]


def test_a_best_model_of_a_later_round_is_removed(tmp_path: Path) -> None:
    folder, sessions = RunDirectory(tmp_path, "toy"), toy_sessions([MemoryStore() for _ in range(3)])
    run(InProcessGrid(sessions, 1), configuration(tmp_path), tmp_path)
    best = int(folder.load_model(BEST_MODEL)[1]["round"])
    go_back(folder, 1)
    assert (folder.path / BEST_MODEL).exists() == (best <= 1)


def test_a_round_without_checkpoint_is_refused_with_those_there_are(tmp_path: Path) -> None:
    folder = RunDirectory(tmp_path, "toy")
    folder.create({}, {})
    with pytest.raises(ConfigError, match="no checkpoint of round 4; choose --round from: none"):
        go_back(folder, 4)


@pytest.mark.parametrize(("newest", "expected"), [(0, []), (3, [1, 2, 3]), (9, [2, 4, 6, 8]), (1000, 7)])
def test_few_checkpoints_are_evenly_spaced(newest: int, expected: list[int] | int) -> None:
    rounds = list(spaced_rounds(newest))
    assert rounds == expected if isinstance(expected, list) else len(rounds) == expected
    earlier = set(spaced_rounds(newest - 1)) if newest else set()
    assert set(rounds) - {newest} <= earlier  # what is kept now was kept before
