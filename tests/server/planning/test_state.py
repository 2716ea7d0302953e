"""A planner's state survives a checkpoint on disk."""

from pathlib import Path

import numpy as np

from common.arrays import sha256
from server.artifacts import RunDirectory
from server.checkpoints import Checkpoint
from server.planning.constrainer import admit, descend, opening
from server.planning.state import State, blank, from_groups, to_groups


def test_it_comes_back_from_a_checkpoint_beside_other_groups(tmp_path: Path) -> None:
    history = blank(2).history.then(3, np.array([9.0, 1.5]), -0.1, 0.7).then(0, np.array([8.0, 1.0]), 1e-9, 1.0)
    dual = descend(admit(opening(3.0), {"ann": 2.0, "Zoë, 2\n/x": 1.0}, 4), {"ann": 1.0}, 0.5)
    state = State(history, dual)
    runs = RunDirectory(tmp_path, "run")
    runs.create({}, {})
    runs.checkpoints.save(Checkpoint(2, 0, {"model": {"w": np.ones(2)}, **to_groups(state)}), best_round=2)
    groups = runs.checkpoints.load(2).groups
    back = from_groups(groups)
    assert {n: sha256(a) for n, a in to_groups(back).items()} == {n: sha256(a) for n, a in to_groups(state).items()}
    assert (back.dual.names, back.dual.bound, back.dual.slack) == (dual.names, 3.0, dual.slack)
    assert groups["model"]["w"].tolist() == [1, 1]


def test_the_first_state_does_too() -> None:
    back = from_groups(to_groups(blank(5)))
    assert (len(back.history), back.history.contexts.shape, back.dual.opened) == (0, (0, 5), False)
