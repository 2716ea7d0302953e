"""Options of the section `[secure-sums]`: helpers, and the clients of a sum."""

from typing import TYPE_CHECKING

from pydantic import Field, field_validator

from common.options import Options
from common.privacy.zcdp import rho_of
from common.tasks.registry import TASKS

if TYPE_CHECKING:
    from common.config.run import RunConfig

MOST_GROUPS = 30
"""Maximum number of groups; a helper has the boxes of 128 sums in memory."""


class SecureSumsOptions(Options):
    """Options of sums of which the server learns the total alone, `[secure-sums]`."""

    helpers: int = Field(2, ge=2, le=5)
    """Number of helpers of a run. Each adds the full noise of its claim."""

    min_sum: int = Field(5, ge=2, le=100_000)
    """Minimum number of clients in a sum; a round with fewer is asked again or stops the run."""

    wait: float = Field(10.0, gt=0, allow_inf_nan=False)
    """Seconds to wait for helpers, before clients are invited."""

    deadline: float = Field(60.0, gt=0, allow_inf_nan=False)
    """Time limit in seconds for an answer of a helper; it is asked four times, then the run stops."""

    renew: bool = False
    """True to replace the helpers of a resumed run by those that are online (`--new-helpers`)."""

    most_examples: int = Field(1000, ge=1)
    """Number of records of a client with the full weight; runs with noise have equal weights."""

    groups: int = Field(1, ge=1, le=MOST_GROUPS)
    """Number of groups of clients with a sum each; the model takes the median of the groups' means.

    Groups are drawn anew in each round.     From three on, liars in fewer than half of them cannot decide it. Noise
    grows by about 1.2·√G, since each sum has G times fewer clients. A round needs `min-sum` clients in each."""

    @field_validator("groups")
    @classmethod
    def _check_groups(cls, value: int) -> int:
        if value == 2:
            raise ValueError("the median of two groups is their mean; say 1, or at least 3")
        return value

    @property
    def fewest(self) -> int:
        """Minimum number of clients in a round."""
        return self.min_sum * self.groups


def find_obstacle(config: "RunConfig") -> str:
    """Return the reason why a run cannot work on secure sums; empty if it can."""
    capabilities, privacy, method = config.capabilities, config.privacy, config.method_options.name
    if not (capabilities.sum_only or capabilities.clusters):
        return f"{method} {capabilities.replies_reason}"
    if capabilities.private_layers == "all":
        return f"{method} sends no updates"
    if capabilities.clusters and config.secure_sums.groups > 1:
        return f"{method} has a sum of clusters, which secure-sums.groups={config.secure_sums.groups} would split"
    if config.federation.robust != "none":
        return f"federation.robust={config.federation.robust} needs the replies of single clients"
    if config.federation.encoding != "float32":
        return f"federation.encoding={config.federation.encoding} rounds the numbers of single replies"
    if capabilities.plaintext:
        return f"{method} reads data of single clients in plaintext ({', '.join(sorted(capabilities.plaintext))})"
    if rows := config.task_options.named_rows:
        return f"the server adds up the rows of table '{rows.table}' that each client names (tasks.{config.task})"
    if config.task_options.count_offset is True and (obstacle := find_count_obstacle(config)):
        return obstacle
    if privacy.unit == "record" and privacy.metric_share:
        return "privacy.metric-share is noise of helpers, and privacy.unit=record adds its noise at the clients"
    if privacy.unit == "client" and privacy.mechanism != "gaussian":
        return f"privacy.mechanism={privacy.mechanism} is noise of one client's own"
    return ""


def check_count_noise(config: "RunConfig") -> None:
    """Check that helpers add noise to updates or to counts alone, not both from budgets of their own.

    Raises:
        ValueError: They do.
    """
    if config.privacy.unit != "none" and config.task_options.count_privacy.unit == "client":
        raise ValueError("count-epsilon is for runs without noise on updates; set privacy.count-share instead")


def find_count_obstacle(config: "RunConfig") -> str:
    """Return the reason why the run's counts cannot be in secure sums; empty if they can."""
    statistics, privacy = TASKS[config.task].counts, config.privacy
    if statistics is None or statistics.template is None:
        return "counts of the model's offset are sent in plaintext"
    if config.task_options.count_privacy.unit == "record":
        return "clients themselves add noise to their counts (count-epsilon)"
    if privacy.unit == "record":
        return f"privacy.unit=record covers no counts (tasks.{config.task}.count-offset=false leaves them out)"
    if privacy.unit != "none" and not statistics.clip:
        remedy = f"tasks.{config.task}.count-offset=false leaves them out"
        return f"secure sums of the counts of task '{config.task}' have no noise, which would drown them ({remedy})"
    if privacy.unit != "none" and privacy.count_share + privacy.metric_share >= 1:
        return "privacy.count-share and privacy.metric-share leave nothing for updates"
    return ""


def count_cost(config: "RunConfig") -> float:
    """Return the cost ρ of summed counts, for each client; 0 without noise or without summed counts."""
    privacy, counts = config.privacy, config.task_options.count_privacy
    if privacy.resolved_trust != "helpers" or not config.task_options.count_offset:
        return 0.0
    if privacy.unit != "none":
        return privacy.count_share * rho_of(privacy.epsilon, privacy.delta) if privacy.unit == "client" else 0.0
    return rho_of(counts.epsilon, counts.delta) if counts.unit == "client" else 0.0


def metric_cost(config: "RunConfig") -> float:
    """Return the cost ρ of summed metrics of the final model, for each client; 0 for none."""
    privacy = config.privacy
    if privacy.resolved_trust != "helpers" or privacy.unit != "client" or not privacy.metric_share:
        return 0.0
    return privacy.metric_share * rho_of(privacy.epsilon, privacy.delta)
