"""What the predictor sees."""

import numpy as np
import pytest

from server.planning.scales import identity_scales, standardize


def test_arms_lie_between_0_and_1_contexts_around_1_and_rewards_within_1() -> None:
    contexts = np.array([[80.0, 10.0, 0.0], [120.0, 30.0, 0.0]])
    seer = standardize(np.array([0.1, 0.11, 0.125]), contexts, np.array([-0.004, 0.002]))
    inputs = seer.inputs(np.array([0, 1, 2]), np.array([[80.0, 10, 0], [120, 30, 0], [100, 20, 5]]))
    assert inputs == pytest.approx(np.array([[0, 0.8, 0.5, 0], [0.4, 1.2, 1.5, 0], [1, 1, 1, 5]]))
    assert seer.rewards(np.array([-0.004, 0.002, 0.4])) == pytest.approx([-1, 0.5, 1])


def test_one_arm_and_rewards_of_nothing_divide_by_no_zero() -> None:
    seer = standardize(np.array([0.1]), np.zeros((2, 1)), np.zeros(2))
    assert seer.inputs(np.array([0]), np.ones((1, 1))).tolist() == [[0, 1]]
    assert seer.rewards(np.array([1e-7, 1.0])) == pytest.approx([0.1, 1])


def test_raw_numbers_are_indices_and_themselves() -> None:
    seer = identity_scales(3, 2)
    assert seer.inputs(np.array([2]), np.array([[40.0, 7.0]])).tolist() == [[2, 40, 7]]
    assert seer.rewards(np.array([-300.0, 0.001])).tolist() == [-300, 0.001]
