"""Signal of training under noise and the refusal of training that noise would drown.

The mean of n clipped updates has at most the norm C. The noise on it has the expected norm σ·√(d·v)/n for d numbers of an
upload, where σ is the standard deviation of one noise on one number. There are v noises in the sum: v = n if each client adds
its own, else one of each helper. Over T rounds updates add up to at most T·C, and noises to √T times that of a round.
The signal is the ratio of the two, √T·C·n / (σ·√(d·v)).

With Gaussian noise σ grows with √T, so the signal is the same for any number of rounds and for any planner.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from common.arrays import Array
from common.config.run import RunConfig, find_obstacle
from common.errors import ConfigError
from common.privacy.mechanisms import build_account, build_mechanism
from common.privacy.options import PrivacyOptions, count_participations
from common.tasks.registry import TASKS
from common.text import count

LEAST_SIGNAL = 20.0
"""Smallest signal at which training starts, from the stored runs of `studies/privacy`.

Runs of task `rules` ended below their floor at 19 and less, and above it at 27 and more.
"""

LEAST_SIGNAL_OF_MAGNITUDES = 1.0
"""Smallest signal of methods that divide their server step by the magnitude of updates.

Noise shortens their steps. Runs of task `sessions` ended below their floor at 0.3 and less, and not below it at 0.8 and more.
"""


def least_signal(config: RunConfig) -> float:
    """Return the smallest signal at which the run's method starts."""
    return LEAST_SIGNAL_OF_MAGNITUDES if config.capabilities.needs_magnitude else LEAST_SIGNAL


MOST_EPSILON = 20.0
"""Largest ε that a refusal suggests; larger ones protect next to nothing."""

HELPERS = 2
"""Number of helpers that a refusal suggests."""


class DrownedError(ConfigError):
    """Noise would drown a training."""


@dataclass(frozen=True)
class Training:
    """Public numbers of a run's training under noise.

    Args:
        privacy: Privacy options of the run.
        size: Number d of numbers in an upload.
        clients: Number n of clients in a round.
        noises: Number v of noises in a sum with helpers; 0 if each client adds its own.
        rounds: Number T of rounds.
        participations: Number of rounds over which a client's budget is spread.
        releases: Number of replies of a client in a round.
        share: Share of the budget for training.
        least: Smallest signal at which training starts.
    """

    privacy: PrivacyOptions
    size: int
    clients: int
    noises: float = 0.0
    rounds: int = 1
    participations: int = 1
    releases: int = 1
    share: float = 1.0
    least: float = LEAST_SIGNAL

    @property
    def noise(self) -> float:
        """Expected norm σ·√(d·v)/n of the noise on a round's mean."""
        total = build_account(self.privacy).total(self.privacy.epsilon, self.privacy.delta)
        cost = self.share * total / (self.participations * self.releases)
        mechanism = build_mechanism(self.privacy, cost, self.size)
        return mechanism.standard_deviation() * math.sqrt(self.size * (self.noises or self.clients)) / self.clients

    @property
    def signal(self) -> float:
        """√T·C over the noise."""
        return math.sqrt(self.rounds) * self.privacy.clip / self.noise

    @property
    def needed_clients(self) -> int:
        """Number of clients at which the signal is large enough, in two digits, rounded up.

        The signal is proportional to √n with noise of each client, and to n with helpers.
        """
        exact = self.clients * (self.least / self.signal) ** (1 if self.noises else 2)
        digit = int(10 ** max(math.floor(math.log10(exact)) - 1, 0))
        return math.ceil(exact / digit * (1 - 1e-9)) * digit

    @property
    def needed_epsilon(self) -> float:
        """Least ε at which the signal is large enough, in two digits; infinite above `MOST_EPSILON`."""
        low, high = self.privacy.epsilon, MOST_EPSILON
        if low >= high or self.with_epsilon(high).signal < self.least:
            return math.inf
        while high / low > 1 + 1e-3:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if self.with_epsilon(middle).signal >= self.least else (middle, high)
        digit = 10.0 ** (math.floor(math.log10(high)) - 1)
        return float(f"{math.ceil(high / digit) * digit:.3g}")

    def with_epsilon(self, epsilon: float) -> "Training":
        """Return the same training at another ε."""
        return replace(self, privacy=self.privacy.model_copy(update={"epsilon": epsilon}))


def count_numbers(config: RunConfig, model: Mapping[str, Array], *, summed: bool) -> int:
    """Return the number of numbers in an upload, without weights; 0 for methods that send none.

    Args:
        config: Configuration of the run.
        model: Parameters of one model.
        summed: True if uploads are vectors of secure sums.
    """
    capabilities = config.capabilities
    private: Collection[str] = TASKS[config.task].private(model, capabilities)
    vectors = 1 + capabilities.needs_gradient
    if summed:
        vectors = capabilities.clusters or vectors + capabilities.needs_magnitude
    return vectors * sum(a.size for name, a in model.items() if name not in private)


def describe_training(config: RunConfig, model: Mapping[str, Array], clients: int, helpers: int) -> Training:
    """Return the public numbers of a run with noise of so many helpers; of each client, if there are none.

    The median of G groups' means has the noise of G·π/2 as many helpers.
    """
    privacy, groups = config.privacy, config.secure_sums.groups
    rounds = config.planner.limit(config.rounds - config.first_rounds)
    total = build_account(privacy).total(privacy.epsilon, privacy.delta)
    return Training(
        privacy,
        count_numbers(config, model, summed=helpers > 0),
        clients,
        helpers * (groups * math.pi / 2 if groups > 1 else 1),
        rounds,
        count_participations(rounds, config.federation.cohort, privacy.participations),
        1 if helpers else 1 + config.capabilities.extra_releases,
        (1 - config.side_cost / total) * (1 - privacy.first_share if config.first else 1),
        least_signal(config),
    )


def check_signal(config: RunConfig, model: Mapping[str, Array], clients: int) -> None:
    """Check that noise leaves something of the training; nothing has been sent before.

    Args:
        config: Configuration of the run, with the resolved trust.
        model: Parameters of one model.
        clients: Number of clients in a round.

    Raises:
        DrownedError: The signal is below `least_signal`; names what would raise it.
    """
    privacy, task = config.privacy, TASKS[config.task]
    if privacy.unit != "client" or privacy.accept_noise or not clients:
        return
    if config.capabilities.closed_form or task.weighs_noise(config.model):
        return
    helpers = config.secure_sums.helpers if privacy.resolved_trust == "helpers" else 0
    training = describe_training(config, model, clients, helpers)
    if not training.size or (signal := training.signal) >= training.least:
        return
    units = task.comparison.units if task.comparison else "clients"
    raise DrownedError(
        f"noise would drown this training: the mean update of {clients:,} {units} has norm {privacy.clip:g} at most, its noise"
        f" norm {training.noise:.3g} (signal {signal:.2g} over {count(training.rounds, 'round')}, {training.least:g} needed);"
        f" {_remedies(config, model, training, units)}; privacy.accept-noise=true trains all the same"
    )


def _remedies(config: RunConfig, model: Mapping[str, Array], training: Training, units: str) -> str:
    """Return the settings under which noise leaves something, those with the least effort first."""
    task, enough = TASKS[config.task], f"about {training.needed_clients:,} {units}"
    remedies = ["use --method ridge"] if task.closed_form else []
    if not training.noises and not find_obstacle(config):
        summed = replace(describe_training(config, model, training.clients, HELPERS), share=1.0)
        also = "" if summed.signal >= summed.least else f" with about {summed.needed_clients:,} {units}"
        remedies.append(f"--helpers {HELPERS}{also}")
    remedies.append(enough)
    if math.isfinite(epsilon := training.needed_epsilon):
        remedies.append(f"--epsilon {epsilon:g}")
    return ("" if task.closed_form else "it needs ") + ", or ".join(remedies)
