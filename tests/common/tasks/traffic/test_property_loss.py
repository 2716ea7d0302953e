"""Property loss in training: distance to the teacher's forecast, also under vmap over clients."""

import numpy as np
import pytest
import torch
from torch.func import grad, vmap

from client.tasks.traffic.data.series import Series
from common.logic.inference import intra_task
from common.tasks.traffic.model import violation
from common.tasks.traffic.properties import Differences
from common.tasks.traffic.vocabulary import SensorVariables
from common.wire.messages import TrainRequest
from tests.common.logic.drawn import closest
from tests.support.build import learner_of
from tests.support.sensors import HORIZON, road_config, sensor

TWO = SensorVariables(variables=("volume", "speed"))


def sample(clients: int) -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(0)
    return torch.randn(clients, 5, 4, 3, generator=rng), torch.randn(clients, 1, 4, 1, generator=rng).expand(
        -1, 5, -1, -1
    )


def test_the_loss_of_a_difference_is_the_distance_to_the_teacher_s_forecast() -> None:
    forecast, low = sample(1)
    phi = intra_task("a", "c", [(t, t) for t in range(4)], low[0, 0, :, 0].tolist())
    expected = (forecast[0] - closest(phi, forecast[0], ("a", "b", "c"))).abs().mean()
    loss = violation(forecast[0], low[0], torch.full_like(low[0], torch.inf), (0, 2))
    assert float(loss) == pytest.approx(float(expected), rel=1e-5)
    assert loss > 0.1


def test_clients_under_vmap_equal_single_clients() -> None:
    forecast, low = sample(4)

    def loss(f: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
        return violation(f, a, a, (0, 2))

    together = vmap(grad(loss))(forecast, low)
    apart = torch.stack([grad(loss)(f, a) for f, a in zip(forecast, low, strict=True)])
    assert torch.equal(together, apart)
    assert set(together.sign().unique().tolist()) == {-1.0, 0.0, 1.0}
    assert not together[..., 1].any()


def test_a_learner_trains_evaluates_and_sends_a_difference() -> None:
    series = sensor(0, 22, variables=2)
    values = np.stack([series.values[:, 0], series.values[:, 0] + 5 * np.arange(len(series.values)) % 7], axis=1)
    config = road_config("fedstl", tasks__traffic__property="difference", tasks__traffic__pair="speed,volume")
    of = learner_of(config, TWO, [Series("a", series.start, values, series.observed)])
    [prepared] = of.sensors
    assert isinstance(prepared.ranges, Differences)
    assert prepared.ranges.pair == (1, 0)
    shared = of.property()
    assert shared["low"].shape == (168, 1)
    np.testing.assert_array_equal(shared["high"], shared["low"])
    batch = of.batch(TrainRequest(1, "", {}))
    assert batch["low"].shape == (len(values), 1)

    first = prepared.test
    forecast = np.random.default_rng(0).normal(size=(len(first), HORIZON, 2))
    clock = prepared.clock[first[:, None] + np.arange(HORIZON)]
    target = torch.from_numpy(first[:, None] + np.arange(HORIZON))
    loss = violation(torch.from_numpy(forecast), batch["low"][target].double(), batch["high"][target], (1, 0))
    assert float(loss) == pytest.approx(prepared.ranges.excess(forecast, clock).mean(), rel=1e-5)

    metrics, _ = of.baselines("test", {})
    assert "property_width" not in metrics
    assert metrics["truth_rho_trace"] > 0.5
