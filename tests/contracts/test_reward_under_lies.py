"""A planner's reward does not follow the metrics of one client."""

import pytest

from common.config.parse import parse
from server.aggregation.metrics import Evaluation
from server.planning.reward import compute_reward
from server.planning.state import pack_values

CONFIG = parse({"task": "traffic", "method": "bgtplanner", "privacy.unit": "client", "privacy.epsilon": 8.0})


def reported(**losses: float) -> Evaluation:
    clients = {name: {"mse": loss} for name, loss in losses.items()}
    return Evaluation({}, clients, weights={name: {"mse": 1.0} for name in clients})


@pytest.mark.parametrize("lie", [0.0, 1e11])
def test_from_five_clients_on_one_of_them_cannot_make_a_reward(lie: float) -> None:
    before = pack_values(dict.fromkeys(("ann", "bob", "cyd", "dee", "liar"), 1.0))
    now = reported(ann=0.9, bob=0.9, cyd=0.9, dee=0.9, liar=lie)
    reward, _ = compute_reward(CONFIG, now, 0.0, before)
    assert reward == pytest.approx(0.1)


def test_below_five_clients_the_reward_is_the_mean_gain() -> None:
    before = pack_values(dict.fromkeys(("ann", "bob", "cyd", "dee"), 1.0))
    reward, _ = compute_reward(CONFIG, reported(ann=0.9, bob=0.7, cyd=0.9, dee=0.9), 0.0, before)
    assert reward == pytest.approx(0.15)


def test_one_client_weighs_at_most_ten_times_the_median_in_a_reward() -> None:
    """The ends, ann and dee, do not count; the others' mean loss is (.7 + 10·.79 + .8)/12."""
    before = pack_values(dict.fromkeys(("ann", "bob", "cyd", "dee", "liar"), 1.0))
    now = reported(ann=0.5, bob=0.7, cyd=0.8, dee=0.9, liar=0.79)
    now.weights["liar"]["mse"] = 1000.0
    assert compute_reward(CONFIG, now, 0.0, before)[0] == pytest.approx(1 - 9.4 / 12)
