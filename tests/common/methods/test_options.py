"""Hyper-parameters that differ between the graph encoder and the predictor."""

import pytest

from common.methods.fedavg import FedAvg
from common.methods.fedrule import FedRule


@pytest.mark.parametrize(("own", "expected"), [(0.0, 0.3), (0.05, 0.05)])
def test_the_predictor_may_have_its_own_rate(own: float, expected: float) -> None:
    options = FedAvg(lr=0.3, lr_predictor=own)
    assert (options.rate("predictor.first.weight"), options.rate("encoder.first.weight")) == (expected, 0.3)
    assert options.rate("predictors") == 0.3, "a prefix of a name is no predictor"


@pytest.mark.parametrize(("own", "expected"), [(-1.0, 1.0), (0.0, 0.0), (0.5, 0.5)])
def test_the_predictor_may_have_its_own_lambda_also_zero(own: float, expected: float) -> None:
    options = FedRule(lam=1.0, lam_predictor=own)
    assert (options.strength("predictor.trigger.weight"), options.strength("encoder.first.weight")) == (expected, 1.0)
