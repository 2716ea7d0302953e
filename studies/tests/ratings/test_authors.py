"""The authors' scheme computes what the product's model and autograd compute one client at a time."""

from typing import Any

import numpy as np
import pytest
import torch
from fedloom_planners.options import ADAP, ADPML

from client.tasks.ratings.data.raters import Rated, Rater, SplitRater
from common.methods.planners import BGTplanner
from common.tasks.ratings.model import StarAttention
from common.tasks.ratings.options import RatingsOptions
from server.planning.planner import Decision
from server.planning.registry import PlannerOptions
from studies.ratings.authors import (
    CLIP,
    SHARED,
    Authors,
    Mechanism,
    clip_rows,
    noise_of,
    pad_ratings,
    predictions,
    sample_noise,
    step_adam,
)
from studies.ratings.paper_figures import BUDGET


def _people(items: int) -> list[SplitRater]:
    rng = np.random.default_rng(0)
    nothing = Rated(np.zeros(0, np.int64), np.zeros(0))
    people = []
    for count in (5, 0, 9):
        rated = Rated(rng.permutation(items)[:count], rng.uniform(size=count))
        people.append(SplitRater(Rater("", np.zeros(0, np.int64), np.zeros(0)), rated, nothing, rated))
    return people


def test_predictions_are_the_products_models() -> None:
    torch.manual_seed(0)
    model = StarAttention(20, RatingsOptions())
    index, _, order = pad_ratings([split.train for split in _people(20)])
    mask, asked = (order < torch.inf).float(), torch.randint(20, (3, 6))
    params = dict(model.named_parameters())
    copies = {name: params[name].expand(3, *params[name].shape) for name in (*SHARED, "user")}
    ours = predictions({**copies, "items": model.items[index]}, mask, model.items[asked])
    torch.testing.assert_close(ours, model(index, mask, asked))


def test_noise_for_a_row() -> None:
    """RDP of order 2 of N(0, σ²) at sensitivity 2C is 2(2C)²/(2σ²)."""
    sigma = noise_of(0.1)
    assert 2 * (2 * CLIP) ** 2 / (2 * sigma**2) == pytest.approx(0.1)


def test_laplace_noise_for_a_row() -> None:
    """ε of Laplace noise of scale b at L1 sensitivity 2C is 2C/b."""
    assert 2 * CLIP / noise_of(0.5, mechanism="laplace") == pytest.approx(0.5)
    assert noise_of(0.5, CLIP / 2, "laplace") == noise_of(0.5, mechanism="laplace") / 2
    torch.manual_seed(0)
    assert float(sample_noise((200_000,), "laplace").square().mean()) == pytest.approx(2, rel=0.02)


class Watched(Authors):
    """Record of the planner's decisions."""

    def __init__(self, *about: Any) -> None:
        super().__init__(*about)
        self.decisions: list[Decision] = []

    def _round(
        self, model: dict[str, torch.Tensor], number: int, decision: Decision, rng: np.random.Generator
    ) -> tuple[dict[str, torch.Tensor], float]:
        self.decisions.append(decision)
        return super()._round(model, number, decision, rng)


@pytest.mark.parametrize("planner", [ADPML(), ADAP(), BGTplanner(t0=1, arms=2)])
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_every_planner_spends_the_budget_and_no_more(planner: PlannerOptions, mechanism: Mechanism) -> None:
    watched = Watched(_people(20), 20, 12, planner, mechanism)
    curve, spent = watched.run(1), [decision.cost for decision in watched.decisions]
    assert list(curve)[-1] == len(spent)
    assert 5 < sum(spent) <= BUDGET * (1 + 1e-9)
    assert len(set(spent)) > 1


def test_a_planner_that_draws_draws_anew_on_each_split() -> None:
    def arms(seed: int) -> list[int]:
        watched = Watched(_people(20), 20, 24, BGTplanner(t0=2, arms=4))
        watched.run(seed)
        return [decision.arm for decision in watched.decisions]

    assert arms(1) == arms(1)
    assert len({tuple(arms(seed)[:8]) for seed in range(4)}) > 1, "stage 1a goes by the draws alone"


def test_rows_are_cut_apart() -> None:
    rows = clip_rows(torch.tensor([[0.3, 0.4], [0.03, 0.04], [0.0, 0.0]]))
    torch.testing.assert_close(rows, torch.tensor([[0.06, 0.08], [0.03, 0.04], [0.0, 0.0]]))
    torch.testing.assert_close(clip_rows(torch.tensor([[0.3, -0.1]]), order=1), torch.tensor([[0.075, -0.025]]))


def test_adam_made_anew_steps_by_the_sign() -> None:
    torch.testing.assert_close(
        step_adam(torch.zeros(3), torch.tensor([2.0, -1e-3, 0.0])), torch.tensor([-0.05, 0.05, 0.0]), atol=1e-5, rtol=0
    )


def test_a_run_is_measured_and_can_be_made_again() -> None:
    first = Authors(_people(20), 20, 12).run(1)
    assert list(first) == [10, 12]
    assert first == Authors(_people(20), 20, 12).run(1)
    assert 0 < first[12]["rmse"] < 1
