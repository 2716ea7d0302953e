"""Data sets of the ratings study, whole: every user is a client."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from studies.harness.experiment import Experiment, Settings, task_options
from studies.ratings.experiments import EXPERIMENTS, has_true_cost, uses_set_constants


@dataclass(frozen=True)
class Setting:
    """One data set.

    Args:
        key: Short name.
        title: Heading on the page.
        folder: Its folder in the folder of all data sets.
        scale: Map of ratings to [0, 1], in words.
        tuned: Options of the default model chosen for this set alone by the exploration, which used its test ratings.
        target: RMSE that the default model has to reach at pure ε = 10 (explore-ratings.md §5).
    """

    key: str
    title: str
    folder: str
    scale: str
    tuned: Settings
    target: float

    def experiments(self, true_epsilon: Callable[[], float]) -> list[Experiment]:
        """Return the rows of this set; `true_epsilon` is the true cost of the authors' accounting here."""
        return [self._adapt(one, true_epsilon) for one in EXPERIMENTS]

    def _adapt(self, one: Experiment, true_epsilon: Callable[[], float]) -> Experiment:
        own = task_options("ratings", self.tuned) if uses_set_constants(one) else {}
        cost = {"privacy.epsilon": true_epsilon()} if has_true_cost(one) else {}
        return replace(one, settings={**one.settings, **own, **cost})


ALONE: Settings = {"offset-weight": 0.0, "slope-noise": 1e9, "slope-weight": 200.0}
"""Disables what the defaults add to the exploration's model."""

SETTINGS = (
    Setting("ml", "MovieLens 100K", "movielens-100k", "r/5", {"offset": 0.1, "slope": 0.035, **ALONE}, 0.2045),
    Setting("ft", "FilmTrust", "filmtrust", "(r − 0.5)/3.5", {"offset": 0.03, "slope": 0.018, **ALONE}, 0.2385),
)
