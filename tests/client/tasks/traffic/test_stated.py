"""Formulas that users write, in training, evaluation and forecasts of one client."""

import numpy as np
import pytest
import torch

from client.state import MemoryStore
from client.tasks.traffic.inference import forecast
from client.tasks.traffic.learner import TrafficLearner
from client.tasks.traffic.metrics import correct, excess, judged
from client.tasks.traffic.sensor import Sensor
from client.training.foresight import training_loss
from client.training.local_round import train
from client.training.participant import Participant
from common.arrays import Arrays, sub
from common.config.run import RunConfig
from common.errors import ConfigError
from common.logic.parser import parse
from common.logic.semantics import robustness, satisfied
from common.models import tensors
from common.options import Scalar
from common.wire.messages import TrainRequest
from tests.support.road_learners import learner, random_model
from tests.support.sensors import HORIZON, road_config, sensor, world

ROOF = "G[0,2] (volume <= 1000)"
CHOICE = "F[0,1] (volume >= 900) & (volume <= 700 -> F[1,2] (volume <= 300))"


def formula_config(text: str = ROOF, **options: Scalar) -> RunConfig:
    kind = {"tasks__traffic__property": "formula", "tasks__traffic__formula": text}
    return road_config("fedavg", **{**kind, "tasks__traffic__anchor": "forecast", **options})


def unscaled(of: Sensor, forecasts: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(of.scaler.unscale(forecasts))


def descend(of: TrafficLearner, config: RunConfig, rounds: int) -> Arrays:
    model = world(config)
    for k in range(1, rounds + 1):
        request = TrainRequest(k, "toy:0", model)
        [reply] = train(config.method_options, [Participant("c", "toy", 0, of, MemoryStore(), request, 8)])
        assert not isinstance(reply, Exception)
        model = sub(model, reply.update)
    return model


@pytest.mark.parametrize("text", [ROOF, CHOICE, "(volume > 400) U[0,2] (volume < 600)", "!(F[0,2] (volume < 500))"])
def test_corrected_forecasts_satisfy_the_formula_in_the_data_s_units(text: str) -> None:
    config = formula_config(text)
    of, model = learner(config=config), random_model(config)
    [prepared] = of.sensors
    made = of.forecasts(model, prepared, prepared.test)
    corrected = correct(prepared, made, prepared.test)
    before = satisfied(parse(text), unscaled(prepared, made), ["volume"])
    assert not before.all()
    assert robustness(parse(text), unscaled(prepared, corrected), ["volume"]).min() > -1e-9
    assert (excess(prepared, corrected, prepared.test) == 0).all()
    np.testing.assert_array_equal((excess(prepared, made, prepared.test) == 0).all(axis=(1, 2)), before.numpy())
    metrics, _ = of.evaluate(model, {}, "test")
    assert metrics["rho_trace"] == pytest.approx(before.double().mean().item())
    assert metrics["teacher_rho_trace"] == 1.0


def test_the_loss_is_eq_2_with_the_teacher_of_the_formula() -> None:
    config = formula_config(CHOICE, tasks__traffic__property_weight=0.7)
    of, model = learner(sensor(0, 20), sensor(1, 20), config=config), random_model(config)
    rows = torch.tensor([0, 9, of.examples // 2 + 3, of.examples - 1])
    request = TrainRequest(1, "toy:0", model)
    batch, targets = of.batch(request), of.step_targets(request)
    assert targets is not None
    step = {"rows": rows} | targets(tensors(model), batch, {"rows": rows})
    expected, count = [], [len(each.train) for each in of.sensors]
    for row in rows.tolist():
        which = int(row >= count[0])
        own, first = of.sensors[which], np.array([of.sensors[which].train[row - which * count[0]]])
        made = of.forecasts(model, own, first)
        error = np.square(made - own.targets(first, HORIZON)[0]).mean()
        expected.append(error + 0.7 * np.abs(made - correct(own, made, first)).mean())
    assert float(of.loss(tensors(model), batch, step)) == pytest.approx(np.mean(expected), rel=1e-5)
    assert training_loss(of, model, {}) > 0


def test_training_with_the_formula_reduces_violations() -> None:
    found = {}
    for weight in (3.0, 0.0):
        config = formula_config("G[0,2] (volume <= 1200)", tasks__traffic__property_weight=weight, lr=0.3)
        of = learner(config=config)
        found[weight] = of.violation(descend(of, config, 4)) / of.violation(world(config))
    assert found[3.0] < 0.7, found
    assert found[0.0] > 0.95, found


def test_stacked_clients_train_as_each_alone() -> None:
    config = formula_config(CHOICE)
    of = [learner(sensor(k, 20), config=config) for k in range(3)]
    model = random_model(config)

    def reply_of(*numbers: int) -> list[Arrays]:
        members = [
            Participant(f"c{k}", "toy", 0, of[k], MemoryStore(), TrainRequest(1, "toy:0", model), 3) for k in numbers
        ]
        return [reply.update for reply in train(config.method_options, members) if not isinstance(reply, Exception)]

    for k, update in enumerate(reply_of(0, 1, 2)):
        [alone] = reply_of(k)
        for name, values in alone.items():
            np.testing.assert_allclose(update[name], values, atol=1e-6)


def test_a_day_s_formula_judges_forecasts_from_midnight_and_half_a_batch_begins_there() -> None:
    day: dict[str, Scalar] = {"tasks__traffic__horizon": 24, "tasks__traffic__history": 30}
    config = formula_config("G[0,5] (volume <= 700)", **day, tasks__traffic__anchor="auto")
    of = learner(config=config)
    [prepared] = of.sensors
    at_midnight = prepared.slots[prepared.train] % 24 == 0
    np.testing.assert_array_equal(judged(prepared, prepared.train), at_midnight)
    rows = of.step_inputs(200, torch.Generator().manual_seed(0))["rows"].numpy()
    assert at_midnight[rows[:, :2]].all()
    assert 0.01 < at_midnight[rows[:, 2:]].mean() < 0.1, "the other half is drawn among all windows"
    made = of.forecasts(random_model(config), prepared, prepared.train)
    moved = (correct(prepared, made, prepared.train) != made).any(axis=(1, 2))
    assert moved.any()
    assert not moved[~at_midnight].any()


def test_nothing_of_the_data_describes_the_formula_to_the_server() -> None:
    assert learner(config=formula_config()).property() == {}


def test_a_forecast_is_corrected_over_the_whole_horizon_and_cut_after() -> None:
    config = formula_config("G[0,0] (volume <= 100) & F[2,2] (volume >= 5000)")
    of, model = learner(config=config), world(config)
    made = forecast(of, of.sensors[0], model, 2, {})
    assert made.corrected[:, 0].tolist() == pytest.approx([100.0, made.student[1, 0]])
    assert made.marked[:, 0].tolist() == [True, False]
    assert np.isnan(made.low).all()
    whole = forecast(of, of.sensors[0], model, HORIZON, {})
    assert whole.corrected[2, 0] == pytest.approx(5000)


def test_an_unknown_variable_is_refused_when_data_are_prepared() -> None:
    with pytest.raises(ConfigError, match="column 9: the federation measures volume; the formula names 'flow'"):
        learner(config=formula_config("G[0,1] (flow <= 3)"))
