"""Rules between the sections of a configuration."""

import pytest

from common.config.parse import parse
from common.errors import ConfigError
from common.methods.planners import PLANNERS, method_names
from common.methods.registry import METHODS
from common.options import Scalar
from common.tasks.registry import TASKS
from tests.support.configurations import refusal
from tests.support.plugins import install, noiseless


@pytest.mark.parametrize("method", ["bgtplanner"])
def test_planners_that_learn_from_rewards_have_a_validation_split(method: str) -> None:
    noisy = {"method": method, "task": "ratings", "privacy.unit": "client"}
    assert parse(noisy).task_options.validation_share == 0.1
    assert parse({**noisy, "task": "rules"}).task_options.validation_share == 0.3
    assert parse({**noisy, "tasks.ratings.validation-share": 0.2}).task_options.validation_share == 0.2
    assert parse({**noisy, "method": "uniform"}).task_options.validation_share == 0
    with pytest.raises(ConfigError, match="the test split must not provide; set tasks"):
        parse({**noisy, "tasks.ratings.validation-share": 0.0})
    stopping = {**noisy, "method": "uniform", "planner.stop": "plateau"}
    assert parse(stopping).task_options.validation_share == 0.1
    with pytest.raises(ConfigError, match="the test split must not provide"):
        parse({**stopping, "tasks.ratings.validation-share": 0.0})


@pytest.mark.parametrize("stop", ["never", "plateau"])
def test_a_planner_with_the_norm_as_reward_has_no_validation_split(stop: str) -> None:
    by_norm = {"method": "bgtplanner", "privacy.unit": "client", "algorithm.bgtplanner.reward": "norm"}
    config = parse({**by_norm, "planner.stop": stop, "evaluate-every": 5})
    assert (config.planner.by_rewards, config.task_options.validation_share) == (False, 0)
    assert parse({**by_norm, "tasks.rules.validation-share": 0.2}).task_options.validation_share == 0.2


def test_fedrep_needs_a_step_for_the_shared_layers() -> None:
    reason = "head-steps = 3 leaves no step for the shared layers; set it below local-steps = 3"
    assert reason in refusal({"method": "fedrep", "algorithm.fedrep.head-steps": 3})


def test_fedstl_needs_time_series() -> None:
    assert (
        "fedstl clusters clients by properties of time series, which task 'rules' lacks; set task=traffic"
        in refusal({"method": "fedstl"})
    )


@pytest.mark.parametrize(
    ("optimizer", "control", "is_valid"),
    [
        ("sgd", "eq3", True),
        ("sgd", "grad_mean", True),
        ("sgd", "adam_literal", False),
        ("adam", "eq3", False),
        ("adam", "grad_mean", True),
        ("adam", "adam_literal", True),
    ],
)
def test_fedrule_refuses_a_control_that_does_not_match_the_optimizer(
    optimizer: str, control: str, is_valid: bool
) -> None:
    flat = {"training.optimizer": optimizer, "algorithm.fedrule.control": control}
    if is_valid:
        assert parse(flat).method_options.control == control
    else:
        assert "control=" in refusal(flat), "the message names the option to set"


def test_noise_that_a_method_does_not_support_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "set privacy.unit=client or privacy.unit=record" in refusal({"method": "bgtplanner"})
    install(monkeypatch, noiseless())
    assert "noiseless adds no noise" in refusal({"method": "noiseless", "privacy.unit": "client"})
    noisy = {"method": "bgtplanner", "privacy.unit": "client"}
    assert "set evaluate-every=1" in refusal({**noisy, "evaluate-every": 2})
    assert "set model=paper or privacy.unit=client" in refusal(
        {"method": "fedavg", "task": "sessions", "privacy.unit": "record"}
    )
    assert "batches of separate records" in refusal({"method": "fedavg", "task": "traffic", "privacy.unit": "record"})
    parse({"method": "fedavg", "task": "sessions", "model": "paper", "privacy.unit": "record"})
    assert "set privacy.mechanism=gaussian or privacy.unit=client" in refusal(
        {"privacy.unit": "record", "privacy.mechanism": "laplace"}
    )
    plain, even = parse({}), parse({"privacy.unit": "client"})
    assert (plain.needs_planner, even.needs_planner, even.planner.name) == (False, True, "uniform")


@pytest.mark.parametrize(
    ("flat", "message"),
    [
        (
            {"method": "pfedme"},
            "method 'pfedme' moved to the package fedloom-studies-personalization; pip install ./studies",
        ),
        ({"method": "fedsgd"}, "planner 'fedsgd' moved to the package fedloom-studies-planners; pip install ./studies"),
        (
            {"method": "uniform", "privacy.unit": "client", "planner.inner": "perfedavg"},
            "pip install ./studies",
        ),
    ],
)
def test_a_method_that_moved_is_refused_with_its_package(flat: dict[str, Scalar], message: str) -> None:
    assert message in refusal(flat)


def test_registered_names_are_those_of_the_options() -> None:
    assert all(METHODS[name].options.name == name for name in METHODS)
    assert set(PLANNERS) < set(method_names())
    assert all(TASKS[name].name == name for name in TASKS)
