"""What the planners' options are when nobody sets any."""

from typing import get_args

import pytest
from pydantic import ValidationError

from common.algorithms import METHODS
from common.algorithms.planners import ADAP, ADPML, BGTplanner, Inner


def test_the_paper_s_symbols_have_the_paper_s_values() -> None:
    options = BGTplanner()
    assert (options.arms, options.t_min, options.context, options.t0) == (5, 0.8, 5, 5)
    assert (options.length_scale, options.omega, options.sigma) == (0.2, 0.001, 0.1)


def test_every_method_that_may_aggregate_is_one() -> None:
    assert set(get_args(Inner)) <= set(METHODS)


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [(BGTplanner, {"t-min": 1.5}), (BGTplanner, {"arms": 0}), (ADPML, {"growth": 0.5}), (ADAP, {"beta": 0.0})],
)
def test_what_makes_no_plan_is_refused(kind: type[BGTplanner], wrong: dict[str, float]) -> None:
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        kind.model_validate(wrong)
