"""Hyper-parameters that differ between the graph encoder and the predictor."""

import pytest

from common.methods.fedavg import FedAvg
from common.methods.fedrule import FedRule


@pytest.mark.parametrize(("separate", "expected"), [(0.0, 0.3), (0.05, 0.05)])
def test_the_predictor_can_have_a_separate_rate(separate: float, expected: float) -> None:
    options = FedAvg(lr=0.3, lr_predictor=separate)
    assert (options.rate("predictor.first.weight"), options.rate("encoder.first.weight")) == (expected, 0.3)
    assert options.rate("predictors") == 0.3, "the prefix ends at a dot"


@pytest.mark.parametrize(("separate", "expected"), [(-1.0, 1.0), (0.0, 0.0), (0.5, 0.5)])
def test_the_predictor_can_have_a_separate_lambda(separate: float, expected: float) -> None:
    options = FedRule(lam=1.0, lam_predictor=separate)
    assert (options.strength("predictor.trigger.weight"), options.strength("encoder.first.weight")) == (expected, 1.0)
