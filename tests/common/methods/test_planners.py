"""Options of planners: defaults, inner methods and limits."""

import pytest
from pydantic import ValidationError

from common.config.parse import parse
from common.errors import ConfigError
from common.methods.planners import PLANNERS, BGTplanner, method_names
from common.methods.registry import METHODS
from common.options import Scalar


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


@pytest.mark.parametrize(
    ("kind", "invalid"),
    [(BGTplanner, {"t-min": 1.5}), (BGTplanner, {"arms": 0})],
)
def test_an_invalid_option_is_refused(kind: type[BGTplanner], invalid: dict[str, float]) -> None:
    with pytest.raises(ValidationError, match=next(iter(invalid))):
        kind.model_validate(invalid)
