"""What the planners' options are when nobody sets any."""

import pytest
from pydantic import ValidationError

from common.config.parse import parse
from common.errors import ConfigError
from common.methods.planners import ADAP, ADPML, PLANNERS, BGTplanner
from common.methods.registry import METHODS, method_names
from common.options import Scalar


def test_the_paper_s_symbols_have_the_paper_s_values() -> None:
    options = BGTplanner()
    assert (options.arms, options.t_min, options.context, options.t0) == (5, 0.8, 5, 5)
    assert (options.length_scale, options.omega, options.sigma) == (0.2, 0.001, 0.1)


@pytest.mark.parametrize("inner", METHODS)
def test_every_training_method_may_be_inside(inner: str) -> None:
    assert BGTplanner(inner=inner).inner == inner


@pytest.mark.parametrize("planner", PLANNERS)
def test_planners_are_methods_and_no_inner_ones(planner: str) -> None:
    assert planner in method_names()
    with pytest.raises(ValidationError, match=f"unknown method '{planner}'"):
        BGTplanner(inner=planner)


@pytest.mark.parametrize(
    ("inner", "task", "reason"),
    [
        ("fedstl", "rules", "set task=traffic"),
        ("pfgnn", "rules", "set task=markets"),
        ("perfedavg", "rules", "which privacy.unit=record does not cover; set privacy.unit=client"),
        ("ifca", "rules", "which privacy.unit=record does not cover; set privacy.unit=client"),
    ],
)
def test_what_is_refused_alone_is_refused_inside(inner: str, task: str, reason: str) -> None:
    noise: dict[str, Scalar] = {"privacy.unit": "record" if "record" in reason else "client"}
    with pytest.raises(ConfigError, match=reason):
        parse({"method": inner, "task": task, **noise})
    with pytest.raises(ConfigError, match=reason):
        parse({"method": "uniform", "task": task, "algorithm.uniform.inner": inner, **noise})


def test_windows_are_handed_over_in_clear_inside_a_planner_without_noise_only() -> None:
    clear = {"task": "traffic", "algorithm.fedstl.cluster-data": "shared_sample"}
    assert parse({"method": "fedsgd", "algorithm.fedsgd.inner": "fedstl", **clear}).capabilities.shared_windows
    with pytest.raises(ConfigError, match="leave noise out"):
        parse({"method": "adpml", "algorithm.adpml.inner": "fedstl", "privacy.unit": "client", **clear})


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [(BGTplanner, {"t-min": 1.5}), (BGTplanner, {"arms": 0}), (ADPML, {"growth": 0.5}), (ADAP, {"beta": 0.0})],
)
def test_what_makes_no_plan_is_refused(kind: type[BGTplanner], wrong: dict[str, float]) -> None:
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        kind.model_validate(wrong)
