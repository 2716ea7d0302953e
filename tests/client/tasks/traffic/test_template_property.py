"""Properties of templates over whole forecasts, inferred and mined by a client."""

import logging

import numpy as np
import pytest
import torch

from client.tasks.traffic.formula_property import past_days
from client.tasks.traffic.formula_targets import judge_windows
from client.tasks.traffic.learner import TrafficLearner
from client.tasks.traffic.metrics import correct, excess
from client.tasks.traffic.sensor import Sensor
from common.arrays import Arrays
from common.config.run import RunConfig
from common.errors import ConfigError, WireError
from common.logic.mining import mine
from common.logic.semantics import satisfied
from common.models import tensors
from common.options import Scalar
from common.tasks.traffic.options import TEMPLATES
from common.tasks.traffic.properties import check_parameters
from common.tasks.traffic.vocabulary import SensorVariables
from common.wire.messages import CLUSTER, TrainRequest
from tests.support.build import learner_of
from tests.support.road_learners import learner, random_model
from tests.support.sensors import road_config, sensor

DAY: dict[str, Scalar] = {"tasks__traffic__horizon": 6, "tasks__traffic__history": 9}
ONE = sorted(TEMPLATES - {"nested"})
PAIR = SensorVariables(variables=("cars", "trucks"))


def template_config(kind: str, **options: Scalar) -> RunConfig:
    return road_config("fedavg", **{**DAY, "tasks__traffic__property": kind, **options})


def prepared(kind: str, **options: Scalar) -> tuple[TrafficLearner, Sensor]:
    of = learner(config=template_config(kind, **options))
    return of, of.sensors[0]


@pytest.mark.parametrize("kind", ONE)
def test_all_past_days_satisfy_the_property_and_corrected_forecasts_too(kind: str) -> None:
    of, own = prepared(kind)
    phi = own.stated
    assert phi is not None
    assert judge_windows(own, 0, own.past).share == 1.0
    made = of.forecasts(random_model(template_config(kind)), own, own.test)
    assert excess(own, made, own.test).max() > 0, "a forecast violates it"
    corrected = correct(own, made, own.test)
    assert phi.scaled is not None
    assert satisfied(phi.scaled, torch.from_numpy(corrected), phi.names).all()
    check_parameters(of.property(), 6, with_structure=True)


def test_two_variables_have_a_nested_property() -> None:
    config = template_config("nested")
    of: TrafficLearner = learner_of(config, PAIR, (sensor(0, 20, variables=2),))
    phi = of.sensors[0].stated
    assert phi is not None
    assert phi.formula is not None
    assert "cars >= " in str(phi.formula)
    assert "F[1,2] (trucks >= " in str(phi.formula)
    with pytest.raises(ConfigError, match="property=nested needs two variables"):
        learner(config=config)


def test_the_mined_property_is_the_tightest() -> None:
    _, own = prepared("mined")
    assert own.stated is not None
    days = past_days(own.stated, own.values, own.slots, own.usable)
    best = mine(torch.from_numpy(days), ["volume"])[0]
    assert own.stated.scaled == best.formula
    assert own.stated.arrays["template"].tolist() == [best.template]


def test_with_few_days_nothing_is_judged_and_the_owner_reads_why(caplog: pytest.LogCaptureFixture) -> None:
    config = template_config("existence", **{"tasks__traffic__anchor": "midnight"})
    with caplog.at_level(logging.WARNING, "fedloom.client"):
        of = learner(sensor(0, 12), config=config)
    assert "no day to judge: 10 complete days in training, 14 are needed" in caplog.text
    model, rows = random_model(config), {"rows": torch.arange(4)}
    request = TrainRequest(1, "toy:0", model)
    targets = of.step_targets(request)
    assert targets is not None
    found = targets(tensors(model), of.batch(request), rows)
    assert not found["judged"].any()
    assert of.property() == {}
    assert of.violation(model) == 0.0
    assert "rho_trace" not in of.evaluate(model, {}, "test")[0]


def step_of(of: TrafficLearner, shared: Arrays, model: Arrays) -> torch.Tensor:
    request = TrainRequest(1, "toy:0", model, shared, phase=CLUSTER)
    targets = of.step_targets(request)
    assert targets is not None
    return targets(tensors(model), of.batch(request), {"rows": torch.arange(40)})["taught"]


def test_a_cluster_s_property_replaces_the_own_one_of_its_template_only() -> None:
    of, _ = prepared("eventualities")
    model = random_model(template_config("eventualities"))
    own, plain = of.property(), step_of(of, {}, model)
    higher = {**own, "bound": own["bound"] + 0.5}
    assert not torch.equal(step_of(of, higher, model), plain)
    assert torch.equal(step_of(of, {"bound": higher["bound"]}, model), step_of(of, higher, model)), "as under noise"
    other = {**own, "windows": own["windows"][:1], "bound": own["bound"][:, :1] + 9}
    assert torch.equal(step_of(of, other, model), plain), "of another structure"
    with pytest.raises(WireError, match="non-finite"):
        step_of(of, {**own, "bound": own["bound"] * np.nan}, model)


def test_sensors_of_one_client_send_the_weakest_parameters() -> None:
    config = template_config("eventualities")
    both = learner(sensor(0, 20), sensor(1, 20), config=config)
    own = [learner(sensor(k, 20), config=config).property()["bound"] for k in (0, 1)]
    np.testing.assert_array_equal(both.property()["bound"], np.minimum(*own))


def test_windows_longer_than_the_forecast_are_refused_with_the_options() -> None:
    with pytest.raises(ConfigError, match="window-width 5 does not fit property=implication and horizon 6"):
        template_config("implication", **{"tasks__traffic__window_width": 5})
