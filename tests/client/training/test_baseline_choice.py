"""Under noise, each client's own held-out data choose between the model and the baseline that sends nothing."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from client.training.comparison import measure_used, prefers_baseline
from common.arrays import Arrays, Floats
from common.config.parse import parse
from common.config.run import RunConfig
from common.options import Scalar

NOISE: dict[str, Scalar] = {"privacy.unit": "client", "privacy.epsilon": 8.0}
TEST_ONLY = {f"tasks.{task}.validation-share": 0.0 for task in ("rules", "sessions", "traffic")}
VALIDATED = {**NOISE, "tasks.sessions.validation-share": 0.2}
NAN = float("nan")


@dataclass
class Measured:
    """Learner with these values of two units in each split: of the model, and of the baseline."""

    task: str
    test: tuple[list[float], list[float]]
    validation: tuple[list[float], list[float]] = field(default_factory=lambda: ([NAN, NAN], [NAN, NAN]))

    def unit_values(self, model: Arrays, statics: Arrays, split: str) -> Floats:
        return np.array(self.test[0] if split == "test" else self.validation[0])

    def baseline_values(self, statics: Arrays, split: str) -> Floats:
        return np.array(self.test[1] if split == "test" else self.validation[1])


def configure(task: str, options: dict[str, Scalar]) -> RunConfig:
    return parse({"method": "fedavg", "task": task, "run-id": "r1", "rounds": 1, **options})


def prefers(learner: Measured, noise: dict[str, Scalar] = NOISE) -> bool:
    """Return the choice in a run without validation data, unless the options have some."""
    config = configure(learner.task, TEST_ONLY | noise)
    return prefers_baseline(config, learner, {}, {})


@pytest.mark.parametrize(
    ("task", "model", "baseline", "chosen"),
    [
        ("rules", [0.2, 0.4], [0.3, 0.4], True),
        ("rules", [0.3, 0.3], [0.3, 0.3], True),  # a tie is no reason for a model with noise
        ("rules", [0.3, 0.5], [0.3, 0.4], False),
        ("sessions", [0.9, NAN], [0.3, NAN], False),  # the second unit has no held-out data
        ("traffic", [0.2, 0.4], [0.3, 0.4], False),
        ("traffic", [0.2, NAN], [0.3, 0.4], True),  # a model that diverged
        ("traffic", [0.2, np.inf], [0.3, 0.4], True),
        ("traffic", [9.0, 9.0], [NAN, NAN], False),  # no baseline
    ],
)
def test_the_baseline_is_kept_unless_the_model_is_better(
    task: str, model: list[float], baseline: list[float], chosen: bool
) -> None:
    assert prefers(Measured(task, (model, baseline))) is chosen
    assert not prefers(Measured(task, (model, baseline)), {})


def test_validation_data_decide_where_the_run_held_out_some() -> None:
    good, bad = ([0.9, 0.9], [0.1, 0.1]), ([0.1, 0.1], [0.9, 0.9])
    assert prefers(Measured("sessions", good, bad))
    assert not prefers(Measured("sessions", bad, good))
    assert prefers(Measured("sessions", good), VALIDATED)  # the client has none: nothing speaks for the model


@pytest.mark.parametrize(("validation", "used"), [(([0.9], [0.1]), 0.2), (([0.1], [0.9]), 0.4), (([NAN], [NAN]), 0.4)])
def test_what_a_client_uses_is_chosen_on_validation_data_and_measured_on_test_data(
    validation: tuple[list[float], list[float]], used: float
) -> None:
    learner = Measured("sessions", ([0.2], [0.4]), validation)
    measured = {"hr20": 0.2, "hr20_history": 0.4}, {"hr20": 5.0, "hr20_history": 5.0}
    values = measure_used(configure("sessions", VALIDATED), learner, {}, {}, measured)
    assert values == ({"used_hr20": used}, {"used_hr20": 5.0})


def test_what_is_used_is_measured_by_every_metric_that_the_baseline_has() -> None:
    """Homes see lists, so their list decides; the rank among all rules is reported beside it."""
    learner = Measured("rules", ([0.2], [0.4]), ([0.1], [0.9]))
    of_both = {"hr20": 0.2, "hr20_frequency": 0.1, "hr20_shown": 0.5, "hr20_shown_frequency": 0.6}
    config = configure("rules", {**NOISE, "tasks.rules.validation-share": 0.2})
    values, weights = measure_used(config, learner, {}, {}, (of_both, dict.fromkeys(of_both, 3.0)))
    assert values == {"used_hr20": 0.1, "used_hr20_shown": 0.6}
    assert weights == {"used_hr20": 3.0, "used_hr20_shown": 3.0}


@pytest.mark.parametrize("options", [NOISE, {"tasks.sessions.validation-share": 0.2}], ids=["no split", "no noise"])
def test_without_noise_or_validation_data_nothing_is_measured(options: dict[str, Scalar]) -> None:
    learner = Measured("sessions", ([0.2], [0.4]), ([0.9], [0.1]))
    measured = {"hr20": 0.2, "hr20_history": 0.4}, {"hr20": 5.0, "hr20_history": 5.0}
    assert measure_used(configure("sessions", options), learner, {}, {}, measured) == ({}, {})


@pytest.mark.parametrize("task", ["ratings", "markets"])
def test_tasks_whose_models_shrink_towards_their_baseline_are_used_as_they_are(task: str) -> None:
    assert not prefers(Measured(task, ([0.0, 0.0], [0.5, 0.5])))
    assert not prefers(Measured(task, ([0.5, 0.5], [0.0, 0.0])))
