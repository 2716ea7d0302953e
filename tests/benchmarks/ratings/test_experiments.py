"""Every row is a run that can be made, and says what it is."""

import pytest

from benchmarks.ratings.experiments import EXPERIMENTS, REWARD_SHARE, Experiment
from benchmarks.ratings.sets import SETTINGS
from common.config.parse import parse
from common.privacy.zcdp import epsilon_of, rho_of

BY_KEY = {one.key: one for one in EXPERIMENTS}


def test_keys_are_unique() -> None:
    assert len(BY_KEY) == len(EXPERIMENTS)


@pytest.mark.parametrize("one", EXPERIMENTS, ids=[one.key for one in EXPERIMENTS])
def test_every_row_is_a_configuration(one: Experiment) -> None:
    for setting in SETTINGS:
        config = parse(one.config(3, setting.tuned, 600.0))
        assert (config.task, config.seed, config.method) == ("ratings", 3, one.planner)
        assert config.privacy.unit == ("client" if one.mechanism else "none")
        assert config.privacy.epsilon == (600.0 if one.at_true_cost else one.epsilon or 10.0)
        assert config.task_options.validation_share == one.held_out


def test_planners_are_not_rewarded_for_test_ratings() -> None:
    assert all(one.held_out == REWARD_SHARE for one in EXPERIMENTS if one.planner == "bgtplanner")


def test_the_row_that_users_get_leaves_the_models_options_alone() -> None:
    keys = BY_KEY["once-privunit-10"].config(0, SETTINGS[0].tuned, 600.0)
    assert not any(key.startswith("tasks.") for key in keys)
    assert "tasks.ratings.slope" in BY_KEY["once-privunit-10-tuned"].config(0, SETTINGS[0].tuned, 600.0)


def test_a_share_of_the_budget_is_one_of_its_account() -> None:
    half = epsilon_of(rho_of(10.0, 1e-5) / 2, 1e-5)
    assert BY_KEY["planned-uniform-gaussian"].share(half) == pytest.approx(0.5)
    assert BY_KEY["planned-uniform-laplace"].share(5.0) == 0.5
