"""State of a run as a value."""

import numpy as np

from server.round.state import RunState


def test_the_next_state_leaves_the_previous_one_unchanged() -> None:
    statics = {"counts": np.ones(2)}
    state = RunState(3, {"w": np.zeros(2)}, {"m": {}}, statics, {"ann": 1, "bob": 3})
    after = state.next({"w": np.ones(2)}, {"v": {}}, ["ann", "cyd"])
    assert (after.round, after.counted, list(after.memory)) == (4, {"ann": 4, "bob": 3, "cyd": 4}, ["v"])
    assert after.statics is statics
    assert (state.round, state.counted, list(state.memory)) == (3, {"ann": 1, "bob": 3}, ["m"])
