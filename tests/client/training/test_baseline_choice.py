"""A client's own held-out data choose between the model of a run and the baselines."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from client.training.comparison import EVIDENCE, choose, choose_answer, count_used, evidence, measure_used, uses_of
from common.arrays import Arrays, Floats
from common.config.parse import parse
from common.config.run import RunConfig
from common.options import Scalar
from common.tasks.registry import TASKS

NOISE: dict[str, Scalar] = {"privacy.unit": "client", "privacy.epsilon": 8.0}
VALIDATED: dict[str, Scalar] = {"tasks.sessions.validation-share": 0.2}
NAN = float("nan")
FOUR = [1.0, 1.0, 1.0, 1.0, 0.0]
NONE = [0.0, 0.0, 0.0, 0.0, 0.0]


@dataclass
class Measured:
    """Learner of one unit with these values of its records: of the model, and of baselines."""

    task: str
    model: list[float]
    baselines: Mapping[str, list[float]]
    test: list[float] = field(default_factory=list)
    shared: list[float] = field(default_factory=list)

    def record_values(self, model: Arrays, statics: Arrays, split: str) -> list[Floats]:
        values = self.test if split == "test" else self.shared if "shared" in model else self.model
        return [np.array(values)]

    def baseline_values(self, statics: Arrays, split: str) -> dict[str, list[Floats]]:
        return {
            name: [np.array(self.test if split == "test" else baseline)] for name, baseline in self.baselines.items()
        }


def configure(task: str, options: Mapping[str, Scalar]) -> RunConfig:
    return parse({"method": "fedavg", "task": task, "run-id": "r1", "rounds": 1, **options})


def chosen(learner: Any, options: Mapping[str, Scalar] = {}) -> str:
    models = {"": Arrays()} | ({"global_": {"shared": np.zeros(1)}} if learner.shared else {})
    return choose(configure(learner.task, options), learner, models, {}, "validation")


@pytest.mark.parametrize(
    ("task", "model", "baselines", "name"),
    [
        ("sessions", NONE, {"own history": FOUR, "recency": NONE}, "own history"),
        ("sessions", NONE, {"own history": [1.0, 1.0, 1.0, 0.0, 0.0], "recency": NONE}, ""),  # three are too few
        ("sessions", NONE, {"own history": FOUR, "recency": [1.0] * 5}, "recency"),
        ("sessions", FOUR, {"own history": FOUR, "recency": FOUR}, ""),  # a tie
        ("sessions", FOUR, {"own history": NONE, "recency": NONE}, ""),
        ("sessions", [], {"own history": [], "recency": []}, ""),  # no held-out data
        ("sessions", [NAN] * 5, {"own history": NONE, "recency": FOUR}, "recency"),  # the model diverged
        (
            "traffic",
            [0.5] * 9,
            {"own ridge regression": [0.4] * 9, "weekly profile": [0.6] * 9},
            "own ridge regression",
        ),
        ("traffic", [0.5] * 9, {"weekly profile": [0.4] * 9}, "weekly profile"),
        ("traffic", [0.5] * 9, {"own ridge regression": [0.4, 0.55] * 4 + [0.5]}, ""),  # better on average by chance
        ("traffic", [np.inf] * 9, {"own ridge regression": [9.0] * 9}, "own ridge regression"),
        ("ratings", [0.5] * 9, {"own mean": [0.4] * 9}, "own mean"),
        ("markets", NONE, {"random walk": FOUR}, "random walk"),
        ("rules", NONE, {"relation frequency": NONE, "popularity": FOUR}, "popularity"),
    ],
)
def test_the_model_stays_unless_held_out_records_speak_against_it(
    task: str, model: list[float], baselines: dict[str, list[float]], name: str
) -> None:
    assert set(baselines) <= set(TASKS[task].baselines)
    assert chosen(Measured(task, model, baselines)) == name


@pytest.mark.parametrize(
    ("model", "baseline", "task", "name"),
    [
        ([0.0, 1.0], [0.0, 1.0], "sessions", "own history"),  # a tie is no reason for a model with noise
        ([1.0, 1.0], [0.0, 1.0], "sessions", ""),
        ([], [], "sessions", "own history"),  # nothing speaks for the model
        ([0.2, 0.3], [0.3, 0.3], "ratings", ""),
        ([0.3, 0.3], [0.2, 0.3], "ratings", ""),  # its model weighs the noise, and needs no doubt
    ],
)
def test_under_noise_the_baseline_stays_unless_the_model_is_better(
    model: list[float], baseline: list[float], task: str, name: str
) -> None:
    assert chosen(Measured(task, model, {next(iter(TASKS[task].baselines)): baseline}), NOISE) == name


def test_a_personalized_model_gives_way_to_the_shared_one_that_is_better() -> None:
    assert chosen(Measured("sessions", NONE, {}, shared=FOUR)) == "global_"
    assert chosen(Measured("sessions", FOUR, {}, shared=NONE)) == ""


def test_answers_follow_validation_data_where_the_run_held_out_some() -> None:
    learner: Any = Measured("sessions", NONE, {"own history": FOUR}, test=NONE)
    assert choose_answer(configure("sessions", VALIDATED), learner, {"": {}}, {}) == "own history"
    assert choose_answer(configure("sessions", {}), learner, {"": {}}, {}) == ""


def test_chance_seldom_reaches_the_evidence() -> None:
    rng = np.random.default_rng(0)
    for records in (3, 5, 20, 200):
        found = [evidence(rng.choice([-1.0, 0.0, 1.0], records)) >= EVIDENCE for _ in range(2_000)]
        assert np.mean(found) <= np.exp(-2)
    assert evidence(np.array([1.0, 1.0, 1.0])) < EVIDENCE <= evidence(np.ones(4))


@pytest.mark.parametrize(("choice", "used"), [("", 0.2), ("own history", 0.4), ("recency", 0.5)])
def test_what_a_client_uses_is_measured_by_every_metric_that_it_has(choice: str, used: float) -> None:
    of_all = {"hr20": 0.2, "hr20_history": 0.4, "hr20_recency": 0.5, "mrr20": 0.1}
    values, weights = measure_used(configure("sessions", VALIDATED), choice, [""], (of_all, dict.fromkeys(of_all, 5.0)))
    assert (values, weights) == ({"used_hr20": used}, {"used_hr20": 5.0})


def test_units_are_counted_by_what_they_use() -> None:
    uses = uses_of("sessions", "recency", ("", "global_"), is_personal=True)
    assert uses == {"personalized model": False, "shared model": False, "own history": False, "recency": True}
    counts = count_used(uses, 3)
    assert set(counts) <= set(TASKS["sessions"].uses)
    assert {key: sums[3] for key, sums in counts.items() if sums[3]} == {"uses_recency": 3}
    assert all((sums[0], sums[3] + sums[4]) == (3, 3) for sums in counts.values())
    shared = uses_of("sessions", "", ("",), is_personal=False)
    assert shared == {"shared model": True, "own history": False, "recency": False}
    private = uses_of("sessions", "", ("",), is_personal=True)
    assert private == {"personalized model": True, "own history": False, "recency": False}
