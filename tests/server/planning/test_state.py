"""State of a planner in a checkpoint."""

from pathlib import Path

import numpy as np

from common.arrays import sha256
from server.planning.state import PlannerState, admit, descend, empty_state, from_groups, open_dual, to_groups
from server.record.folder import Checkpoint, RunDirectory


def test_a_loaded_state_equals_the_saved_one(tmp_path: Path) -> None:
    history = (
        empty_state(2).history.append(3, np.array([9.0, 1.5]), -0.1, 0.7).append(0, np.array([8.0, 1.0]), 1e-9, 1.0)
    )
    dual = descend(admit(open_dual(3.0), {"ann": 2.0, "Zoë, 2\n/x": 1.0}, 4), {"ann": 1.0}, 0.5)
    state = PlannerState(history, dual)
    runs = RunDirectory(tmp_path, "run")
    runs.create({}, {})
    runs.checkpoints.save(Checkpoint(2, 0, {"model": {"w": np.ones(2)}, **to_groups(state)}), best_round=2)
    groups = runs.checkpoints.load(2).groups
    back = from_groups(groups)
    assert {n: sha256(a) for n, a in to_groups(back).items()} == {n: sha256(a) for n, a in to_groups(state).items()}
    assert (back.dual.names, back.dual.bound, back.dual.slack) == (dual.names, 3.0, dual.slack)
    assert groups["model"]["w"].tolist() == [1, 1]


def test_a_loaded_initial_state_equals_the_saved_one() -> None:
    back = from_groups(to_groups(empty_state(5)))
    assert (len(back.history), back.history.contexts.shape, back.dual.is_open) == (0, (0, 5), False)
