"""Scales of the predictor's inputs and rewards."""

import numpy as np
import pytest

from server.planning.bandit import identity_scales, standardize


def test_standardized_arms_contexts_and_rewards() -> None:
    contexts = np.array([[80.0, 10.0, 0.0], [120.0, 30.0, 0.0]])
    scale = standardize(np.array([0.1, 0.11, 0.125]), contexts, np.array([-0.004, 0.002]))
    inputs = scale.inputs(np.array([0, 1, 2]), np.array([[80.0, 10, 0], [120, 30, 0], [100, 20, 5]]))
    assert inputs == pytest.approx(np.array([[0, 0.8, 0.5, 0], [0.4, 1.2, 1.5, 0], [1, 1, 1, 5]]))
    assert scale.rewards(np.array([-0.004, 0.002, 0.4])) == pytest.approx([-1, 0.5, 1])


def test_one_arm_and_rewards_of_0_cause_no_division_by_0() -> None:
    scale = standardize(np.array([0.1]), np.zeros((2, 1)), np.zeros(2))
    assert scale.inputs(np.array([0]), np.ones((1, 1))).tolist() == [[0, 1]]
    assert scale.rewards(np.array([1e-7, 1.0])) == pytest.approx([0.1, 1])


def test_identity_scales_change_nothing() -> None:
    scale = identity_scales(3, 2)
    assert scale.inputs(np.array([2]), np.array([[40.0, 7.0]])).tolist() == [[2, 40, 7]]
    assert scale.rewards(np.array([-300.0, 0.001])).tolist() == [-300, 0.001]


def test_contexts_of_almost_zero_stay_finite_beside_a_later_one() -> None:
    scale = standardize(np.array([0.1, 0.2]), np.array([[2e-308], [0.0]]), np.ones(2))
    assert scale.inputs(np.array([0]), np.array([[5.0]])).tolist() == [[0.0, 5.0]]
