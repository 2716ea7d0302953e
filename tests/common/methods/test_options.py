"""Options of methods and planners: rates, defaults, inner methods and limits."""

import pytest
from pydantic import ValidationError

from common.config.parse import parse
from common.errors import ConfigError
from common.methods.fedavg import FedAvg, FedGA
from common.methods.fedrule import FedRule
from common.methods.planners import PLANNERS, BGTplanner, method_names
from common.methods.registry import METHODS
from common.options import Scalar


@pytest.mark.parametrize(("separate", "expected"), [(0.0, 0.3), (0.05, 0.05)])
def test_the_predictor_can_have_a_separate_rate(separate: float, expected: float) -> None:
    options = FedAvg(lr=0.3, lr_predictor=separate)
    assert (options.rate("predictor.first.weight"), options.rate("encoder.first.weight")) == (expected, 0.3)
    assert options.rate("predictors") == 0.3, "the prefix ends at a dot"


@pytest.mark.parametrize(("separate", "expected"), [(-1.0, 1.0), (0.0, 0.0), (0.5, 0.5)])
def test_the_predictor_can_have_a_separate_lambda(separate: float, expected: float) -> None:
    options = FedRule(lam=1.0, lam_predictor=separate)
    assert (options.strength("predictor.trigger.weight"), options.strength("encoder.first.weight")) == (expected, 1.0)


def test_the_step_is_constant_by_default() -> None:
    assert [FedGA(server_lr=0.02).eta(t, 4) for t in (1, 4)] == [0.02, 0.02]


def test_the_step_decreases_linearly_over_the_cooldown() -> None:
    options = FedAvg(server_lr=1.0, cooldown=0.5)
    assert [options.eta(t, 8) for t in range(1, 9)] == [1, 1, 1, 1, 1, 0.75, 0.5, 0.25]


def test_a_cooldown_shorter_than_a_round_has_no_effect() -> None:
    assert FedAvg(cooldown=0.1).eta(3, 3) == pytest.approx(1.0)


def test_defaults_are_the_values_of_the_paper() -> None:
    options = BGTplanner()
    assert (options.arms, options.t_min, options.context, options.t0) == (5, 0.8, 5, 5)
    assert (options.length_scale, options.omega, options.sigma) == (0.2, 0.001, 0.1)


@pytest.mark.parametrize("inner", METHODS)
def test_every_training_method_can_be_the_inner_method(inner: str) -> None:
    assert BGTplanner(inner=inner).inner == inner


@pytest.mark.parametrize("planner", PLANNERS)
def test_planners_are_methods_but_not_inner_methods(planner: str) -> None:
    assert planner in method_names()
    with pytest.raises(ValidationError, match=f"unknown method '{planner}'"):
        BGTplanner(inner=planner)


@pytest.mark.parametrize(
    ("inner", "task", "reason"),
    [
        ("fedstl", "rules", "set task=traffic"),
        ("pfgnn", "rules", "set task=markets"),
        ("ifca", "rules", "which privacy.unit=record does not cover; set privacy.unit=client"),
    ],
)
def test_a_refused_method_is_refused_as_inner_method(inner: str, task: str, reason: str) -> None:
    noise: dict[str, Scalar] = {"privacy.unit": "record" if "record" in reason else "client"}
    with pytest.raises(ConfigError, match=reason):
        parse({"method": inner, "task": task, **noise})
    with pytest.raises(ConfigError, match=reason):
        parse({"method": "uniform", "task": task, "planner.inner": inner, **noise})


@pytest.mark.parametrize(("kind", "invalid"), [(BGTplanner, {"t-min": 1.5}), (BGTplanner, {"arms": 0})])
def test_an_invalid_option_is_refused(kind: type[BGTplanner], invalid: dict[str, float]) -> None:
    with pytest.raises(ValidationError, match=next(iter(invalid))):
        kind.model_validate(invalid)
