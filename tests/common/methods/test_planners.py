"""What the planners' options are when nobody sets any."""

from typing import get_args

import pytest
from pydantic import ValidationError

from common.config.parse import parse
from common.config.run import hands_over_windows
from common.errors import ConfigError
from common.methods.planners import ADAP, ADPML, BGTplanner, Inner
from common.methods.registry import METHODS, Planner
from common.options import Scalar


def test_the_paper_s_symbols_have_the_paper_s_values() -> None:
    options = BGTplanner()
    assert (options.arms, options.t_min, options.context, options.t0) == (5, 0.8, 5, 5)
    assert (options.length_scale, options.omega, options.sigma) == (0.2, 0.001, 0.1)


def test_every_method_but_planners_may_be_inside() -> None:
    planners = {get_args(kind.model_fields["name"].annotation)[0] for kind in get_args(Planner)}
    assert set(get_args(Inner)) == set(METHODS) - planners


@pytest.mark.parametrize(
    ("inner", "task", "reason"),
    [
        ("fedstl", "rules", "say task=traffic"),
        ("pfgnn", "rules", "say task=markets"),
        ("perfedavg", "rules", "of which privacy.unit=record counts one; say privacy.unit=client"),
        ("ifca", "rules", "which privacy.unit=record does not cover; say privacy.unit=client"),
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
    assert hands_over_windows(parse({"method": "fedsgd", "algorithm.fedsgd.inner": "fedstl", **clear}))
    with pytest.raises(ConfigError, match="leave noise out"):
        parse({"method": "adpml", "algorithm.adpml.inner": "fedstl", "privacy.unit": "client", **clear})


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [(BGTplanner, {"t-min": 1.5}), (BGTplanner, {"arms": 0}), (ADPML, {"growth": 0.5}), (ADAP, {"beta": 0.0})],
)
def test_what_makes_no_plan_is_refused(kind: type[BGTplanner], wrong: dict[str, float]) -> None:
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        kind.model_validate(wrong)
