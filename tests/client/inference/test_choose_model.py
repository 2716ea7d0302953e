"""Choice of the parameters that a client uses: the fitting cluster, shared or own layers."""

import numpy as np
import pytest

from client.inference.model_choice import fit_model, has_own_parameters
from common.arrays import Arrays, add_prefix
from common.models import parameters
from tests.support.weekly_sensor import weekly_config, weekly_learner


def test_a_client_uses_the_cluster_with_the_lowest_loss_on_its_data() -> None:
    config = weekly_config("ifca")
    made = weekly_learner(config)
    good = parameters(made.module)  # the profile, exact already: a round of training leaves it as it is
    bad = {**good, "linear.bias": np.full(24, 5.0, np.float32)}
    chosen = fit_model(config, made, {**add_prefix("0", bad), **add_prefix("1", good)}, {})
    np.testing.assert_allclose(chosen["linear.bias"], 0, atol=1e-6)
    assert chosen.keys() == good.keys()


def test_private_layers_are_fitted_here_and_only_they() -> None:
    config = weekly_config("fedrep", model="paper", algorithm__fedrep__local_steps=2, algorithm__fedrep__head_steps=1)
    made = weekly_learner(config)
    trained = parameters(made.module)
    chosen = fit_model(config, made, trained, {})
    moved = {name for name, a in chosen.items() if not np.array_equal(a, trained[name])}
    assert moved == {"head.weight", "head.bias"}
    assert fit_model(weekly_config(model="paper"), made, trained, {}).keys() == trained.keys()


@pytest.mark.parametrize(
    ("method", "has_own"), [("fedavg", False), ("fedrep", True), ("ditto", True), ("ifca", True), ("fedstl", True)]
)
def test_methods_that_leave_parameters_with_the_client(method: str, has_own: bool) -> None:
    names: Arrays = {"0/head.weight": np.zeros(1), "0/lower.weight": np.zeros(1)}
    assert has_own_parameters(weekly_config(method), names) == has_own
