"""Every row of the ratings study is a valid configuration."""

import pytest

from common.config.parse import parse
from common.privacy.accounts import epsilon_of, rho_of
from studies.harness.experiment import Experiment
from studies.ratings.experiments import (
    EARLY,
    EXPERIMENTS,
    REWARD_SHARE,
    has_true_cost,
    held_out,
)
from studies.ratings.noise import budget_share, epsilon_of_run, mechanism_of
from studies.ratings.sets import SETTINGS

BY_KEY = {(one.protocol, one.key): one for one in EXPERIMENTS}
ADAPTED = [(setting.key, one) for setting in SETTINGS for one in setting.experiments(lambda: 600.0)]


def test_keys_are_unique_within_a_protocol() -> None:
    assert len(BY_KEY) == len(EXPERIMENTS)


@pytest.mark.parametrize(
    "one", [one for _, one in ADAPTED], ids=[f"{s}-{one.protocol}-{one.key}" for s, one in ADAPTED]
)
def test_every_row_is_a_configuration(one: Experiment) -> None:
    config = parse({**one.settings, "seed": 3})
    assert (config.task, config.seed, config.method) == ("ratings", 3, one.settings["method"])
    assert config.privacy.unit == ("client" if mechanism_of(one) else "none")
    assert config.privacy.epsilon == (600.0 if has_true_cost(one) else epsilon_of_run(one) or 10.0)
    assert config.task_options.validation_share == held_out(one)


def test_planners_are_not_rewarded_for_test_ratings() -> None:
    planned = [one for one in EXPERIMENTS if one.settings["method"] == "bgtplanner"]
    assert planned
    assert all(held_out(one) == REWARD_SHARE for one in planned)


def test_rows_of_a_smaller_t_min_are_otherwise_those_of_the_planner() -> None:
    for share in EARLY:
        early = BY_KEY["paper", f"bgtplanner-t{share:g}-gaussian-1"].settings
        assert early == {**BY_KEY["paper", "bgtplanner-gaussian-1"].settings, "algorithm.bgtplanner.t-min": share}


def test_the_default_row_has_no_options_of_the_task() -> None:
    adapted = {(one.protocol, one.key): one.settings for one in SETTINGS[0].experiments(lambda: 600.0)}
    assert not any(key.startswith("tasks.") for key in adapted["once", "privunit-10"])
    assert "tasks.ratings.slope" in adapted["once", "privunit-10-tuned"]


def test_a_share_of_the_budget_is_in_the_unit_of_its_account() -> None:
    half = epsilon_of(rho_of(10.0, 1e-5) / 2, 1e-5)
    assert budget_share(BY_KEY["planned", "uniform-gaussian"], half) == pytest.approx(0.5)
    assert budget_share(BY_KEY["planned", "uniform-laplace"], 5.0) == 0.5
