"""Definition of a task, as far as server and clients must agree on it."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from common.errors import ConfigError
from common.methods.base import MethodOptions
from common.metrics import MODEL_FAMILIES, USED, MetricFamily, MetricSpec, find_metric
from common.options import Scalar, check_defaults
from common.privacy.options import PrivacyOptions
from common.tasks.closed_form import ClosedForm
from common.tasks.options import Capabilities, TaskOptions
from common.tasks.vocabulary import Vocabulary

if TYPE_CHECKING:
    from torch import nn

SIMPLE = "simple"
"""Key of the sums of differences to the simple baseline; the start of further keys."""

ALONE = "alone"
"""Key of the sums of differences to models that each client trained alone."""

ALONE_PREFIX = "alone_"
"""Prefix of the metrics of these models."""

BOTH = "both"
"""Key of the sums of differences to the better of both, unit by unit; the start of further keys."""

PERSONAL, SHARED, SUMS = "personalized model", "shared model", "sums alone"
"""Names of the models that a client may use."""


def uses_key(name: str) -> str:
    """Return the key of the numbers of units that use a model or baseline, and that do not."""
    return f"uses_{name.replace(' ', '_')}"


@dataclass(frozen=True)
class Comparison:
    """Comparison of models unit by unit for the verdict on a run, by the metric of the task's objective.

    Args:
        units: Plural noun of the units of data, such as `homes`.
        baseline: Name of the simple baseline, whose metric is that of `TaskSpec.simple`.
        others: Name of each further baseline -> metric key -> key of the same metric of that baseline.
        summed: Those of `others` that need sums over clients.
    """

    units: str
    baseline: str
    others: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    summed: frozenset[str] = frozenset()


OptionsT = TypeVar("OptionsT", bound=TaskOptions)
VocabularyT = TypeVar("VocabularyT", bound=Vocabulary)


@dataclass(frozen=True)
class TaskRun(Generic[OptionsT, VocabularyT]):
    """View of a run's configuration for task code; hashable if the vocabulary is."""

    options: OptionsT
    vocabulary: VocabularyT
    model: str
    method: MethodOptions
    privacy: PrivacyOptions
    rounds: int
    seed: int
    on_top: bool = False
    """True if the network trains on top of a closed form; it then starts as a rest of zero."""


@dataclass(frozen=True)
class Objective:
    """Metric that decides on models.

    The best round, early stopping, rewards of planners, the verdict and marks on pages follow it. Its `MetricSpec` says if
    lower or higher values are better.
    """

    metric: str


@dataclass(frozen=True, eq=False)
class TaskSpec(Generic[OptionsT, VocabularyT]):
    """Definition of a task for server and clients; importing it must not import torch.

    Args:
        name: Name in options and files, `[a-z][a-z0-9_]{0,31}`.
        summary: One line for `fedloom tasks` and help.
        options: Class of `[tasks.<name>]`.
        vocabulary: Class of the public vocabulary.
        demo: Return the vocabulary of the embedded data.
        build_model: Build the model with parameters from torch's global generator; imports torch inside.
        metrics: Metrics in the order of tables; keys are stable.
        families: Prefixes of derived metrics.
        objective: Metric that decides on models.
        head: Prefixes of the parameters that form the private head.
        client_only: Prefixes of the parameters that never leave a client, whatever the method.
        record_dp: Model variants whose batches separate records, as DP-SGD needs.
        closed_form: Model that follows from sums without training, for method `ridge`; None if the task has none.
        defaults: Options that `--task NAME` sets where no method is named; `method` among them.
        network: The same of the trained model of a task whose default is a closed form. They hold where its method is named,
            and where each client draws its own noise.
        paper: Options that `--model paper` sets, `method` among them: those of the study's row of the paper's method.
        planner_validation_share: Validation split that a planner gets if the run sets none.
        loss_is_error: True if the training loss of a model variant is an error measure.
        simple: Metric key -> key of the same metric of the simple baseline.
        comparison: Comparison by units for the verdict; None if runs have no verdict.
        remark: Return a remark on a run with these options and number of clients, printed at its start; empty for none.
        weighs_noise: True if a model variant weighs what it learnt by the noise on it, and so loses nothing to noise.
        takes_networks: True if a package may provide its network, which reads graphs.
        records_per_example: Largest mean number of records of the examples that a client enrols with.
    """

    name: str
    summary: str
    options: type[OptionsT]
    vocabulary: type[VocabularyT]
    demo: Callable[[], VocabularyT]
    build_model: Callable[[TaskRun[OptionsT, VocabularyT]], "nn.Module"]
    metrics: tuple[MetricSpec, ...]
    objective: Objective
    families: tuple[MetricFamily, ...] = MODEL_FAMILIES
    head: tuple[str, ...] = ()
    client_only: tuple[str, ...] = ()
    record_dp: frozenset[str] = frozenset()
    closed_form: ClosedForm[VocabularyT] | None = None
    defaults: Mapping[str, Scalar] = field(default_factory=dict)
    network: Mapping[str, Scalar] = field(default_factory=dict)
    paper: Mapping[str, Scalar] = field(default_factory=dict)
    planner_validation_share: float = 0.1
    loss_is_error: Callable[[str], bool] = lambda model: True
    simple: Mapping[str, str] = field(default_factory=dict)
    comparison: Comparison | None = None
    remark: Callable[[OptionsT, PrivacyOptions, int], str] = lambda options, privacy, clients: ""
    weighs_noise: Callable[[str], bool] = lambda model: False
    records_per_example: int = 1
    takes_networks: bool = False

    def __post_init__(self) -> None:
        """Check that the objective is a metric of the model with a direction, which its baseline shares.

        Raises:
            ConfigError: It is not.
        """
        check_defaults(self.options)
        metric, found = self.objective.metric, self.find_metric(self.objective.metric)
        if found is None:
            listed = ", ".join(spec.key for spec in self.metrics)
            raise ConfigError(f"task '{self.name}': the objective '{metric}' is not one of its metrics: {listed}")
        if not found.better or found.baseline:
            lack = "is of a baseline" if found.baseline else "has no better direction"
            raise ConfigError(
                f"task '{self.name}': the objective '{metric}' {lack}; name a metric of the model that has one"
            )
        simple = self.find_metric(self.simple.get(metric, metric))
        if simple is None or simple.better != found.better:
            raise ConfigError(
                f"task '{self.name}': the baseline '{self.simple[metric]}' of the objective '{metric}' is not a metric with"
                f" better = {found.better}; correct `simple`"
            )

    @cached_property
    def baselines(self) -> Mapping[str, Mapping[str, str]]:
        """Name of each baseline -> metric key -> key of that metric of the baseline; the simple one first."""
        return {self.comparison.baseline: self.simple, **self.comparison.others} if self.comparison else {}

    @cached_property
    def rivals(self) -> tuple[str, ...]:
        """Names of the baselines for which clients send nothing; the verdict compares with the strongest."""
        return tuple(name for name in self.baselines if self.comparison and name not in self.comparison.summed)

    def paired_key(self, kind: str, baseline: str) -> str:
        """Return the key of the sums of differences of that kind, `SIMPLE` or `BOTH`, to a baseline."""
        return kind if baseline == self.rivals[0] else f"{kind}_{baseline.replace(' ', '_')}"

    @cached_property
    def pairs(self) -> tuple[str, ...]:
        """Keys of all sums over units; none without a comparison."""
        kinds = (self.paired_key(kind, name) for kind in (SIMPLE, BOTH) for name in self.rivals)
        return (*kinds, ALONE, *self.uses) if self.comparison else ()

    @cached_property
    def uses(self) -> tuple[str, ...]:
        """Keys of the numbers of units by what they use; none without a comparison."""
        return tuple(map(uses_key, (PERSONAL, SHARED, SUMS, *self.baselines))) if self.comparison else ()

    @cached_property
    def higher_is_better(self) -> bool:
        """True if higher values of the objective are better."""
        found = self.find_metric(self.objective.metric)
        return found is not None and found.better == "higher"

    @property
    def trained(self) -> Mapping[str, Scalar]:
        """Options with which the task trains a model."""
        return self.network or self.defaults

    def private(self, names: Collection[str], capabilities: Capabilities) -> frozenset[str]:
        """Return the parameters, among those names, that stay with a client under a method."""
        if capabilities.private_layers == "all":
            return frozenset(names)
        head = self.head if capabilities.private_layers == "head" else ()
        private_head = frozenset(name for name in names if name.startswith(head)) - capabilities.shared_head
        return private_head | {name for name in names if self.is_client_only(name)}

    def find_metric(self, key: str) -> MetricSpec | None:
        """Return the description of a metric that clients report; None if the task declares none."""
        return find_metric(key, self.metrics, (*self.families, *MODEL_FAMILIES, USED))

    def is_client_only(self, parameter: str) -> bool:
        """Return True if the parameter never leaves a client, whatever the method."""
        return parameter.startswith(self.client_only)


AnyTask = TaskSpec[Any, Any]
"""Task with erased type parameters."""
