"""Data sets of the sessions study, reduced to sizes that two cores can tune on."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from studies.harness.experiment import Experiment, Settings, method_options
from studies.sessions import clicked_items, denominators, long_runs, sensitivity
from studies.sessions.experiments import (
    ABLATION,
    COARSE,
    COOLING,
    EQUAL_BYTES,
    EXPERIMENTS,
    FINE,
    SAMPLED,
    WITHOUT_SERVER_RATE,
    Points,
)


@dataclass(frozen=True)
class Setting:
    """One data set and its training protocol.

    Args:
        key: Short name.
        title: Heading on the page.
        about: Reduction of the published set, in a sentence.
        clients_a_round: Size of a cohort.
        cohort: Share of all clients that this is.
        rounds: Rounds of training.
        grid: Points of the adaptive methods.
        points: Row -> its point, tuned on the set that this one resembles; such a row is not tuned here.
        seeds: Row -> number of its seeds, where it is not the row's own.
        without: Rows that are not run on it.
        evaluate_every: Rounds between two evaluations by all clients.
        cooldown: Share of the rounds, the last ones, over which the server's step falls to zero.
        equal_bytes_rounds: Rounds of the full softmax that send as many bytes up as these rows; 0: not compared.
    """

    key: str
    title: str
    about: str
    clients_a_round: int
    cohort: float
    rounds: int
    grid: Points = COARSE
    points: Mapping[str, Settings] = field(default_factory=dict)
    seeds: Mapping[str, int] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    evaluate_every: int = 10
    cooldown: float = 0.0
    equal_bytes_rounds: int = 0

    def experiments(self) -> tuple[Experiment, ...]:
        """Return the rows of this set, with its protocol in their configuration."""
        return tuple(self._adapt(one) for one in EXPERIMENTS if one.key not in self.without)

    def sampled(self) -> tuple[Experiment, ...]:
        """Return the rows with sampled softmax, evaluated at their end and where full ones choose their point."""
        rarely = replace(self, evaluate_every=self.rounds - self.evaluate_every)
        return tuple(rarely._adapt(one) for one in SAMPLED)

    def equal_bytes(self) -> tuple[Experiment, ...]:
        """Return the row with the full softmax at as many bytes up, where it is compared."""
        rounds = self.equal_bytes_rounds
        return (replace(self, rounds=rounds, evaluate_every=rounds - 1)._adapt(EQUAL_BYTES),) if rounds else ()

    def special(self) -> dict[str, tuple[Experiment, ...]]:
        """Return the rows of further protocols, which the first set has."""
        modules = (sensitivity, denominators, clicked_items, long_runs)
        return {one.PROTOCOL: tuple(map(self._adapt, one.ROWS)) for one in modules if self.key == one.SET}

    def _adapt(self, one: Experiment) -> Experiment:
        if one.settings["method"] == "ridge":
            return one
        method = str(one.settings["method"])
        protocol = {
            "rounds": self.rounds,
            "evaluate-every": self.evaluate_every,
            "federation.cohort": self.cohort,
            **(method_options(method, {"cooldown": self.cooldown}) if method not in WITHOUT_SERVER_RATE else {}),
        }
        given = self.points.get(one.key)
        points = tuple(method_options(method, point) for point in ((given,) if given else self.grid))
        grid = one.grid if one.grid and not given else points
        return replace(one, settings={**protocol, **one.settings}, grid=grid, seeds=self.seeds.get(one.key, one.seeds))


ABLATIONS = ("csme", "fedadam-dra", "fedyogi-dra", "fedga-ramp", "fedga-quadratic")
LONGER = ("fedavg-plateau", "fedavg-steps-5")
OTHERS_UNIFORM = ("fedyogi-uniform", "fedadam-uniform")

POINTS_OF_YOOCHOOSE64: Mapping[str, Settings] = {
    "fedavg": {"lr": 3.0, "local-steps": 5},
    "fedavgm": {"lr": 0.3, "local-steps": 5},
    "fedprox": {"lr": 1.0, "mu": 0.01},
    "fedgate": {"lr": 3.0, "local-steps": 5},
}
"""Chosen points of rows without an adaptive server on Yoochoose 1/64, for similar sets."""

SETTINGS = (
    Setting(
        "gowalla",
        "Gowalla, clients = users",
        "Users of two tenths of the published sessions, the 2,000 most visited places, 1,000 random users with five or more "
        "sessions. A random fifth of each user's sessions is the test split, since this form has no times.",
        100,
        0.1,
        100,
        FINE,
        equal_bytes_rounds=37,
    ),
    Setting(
        "yoochoose",
        "Yoochoose, 100,000 clicks, clients = groups of 20 sessions",
        "One week of the set; the next day is the test split.",
        60,
        60 / 890,
        160,
        points=POINTS_OF_YOOCHOOSE64,
        without=(*ABLATIONS, *OTHERS_UNIFORM, *LONGER),
        equal_bytes_rounds=46,
    ),
    Setting(
        "yoochoose64",
        "Yoochoose 1/64, clients = groups of 20 sessions",
        "The 3,000 most clicked items, 500 random groups with at least five remaining sessions, four random test cases each.",
        50,
        0.1,
        100,
        ABLATION,
        seeds={"fedavg": 10, "fedprox": 10},
        without=(*ABLATIONS, *LONGER),
        evaluate_every=20,
        cooldown=0.5,
    ),
    Setting(
        "diginetica",
        "Diginetica, clients = groups of 20 sessions",
        "The 3,000 most clicked items, 1,000 random groups with at least five remaining sessions, four random test cases each.",
        100,
        0.1,
        100,
        COOLING,
        POINTS_OF_YOOCHOOSE64,
        without=(*ABLATIONS, *OTHERS_UNIFORM, *LONGER),
        evaluate_every=20,
        cooldown=0.5,
    ),
)
