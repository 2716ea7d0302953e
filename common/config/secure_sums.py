"""Options of the section `[secure-sums]`: helpers, groups and time limits of sums."""

from pydantic import Field, field_validator

from common.options import Options

FEWEST_GROUPS = 3
"""Number of groups from which on one of them cannot decide the median."""

GROUPS_OF_STATISTICS = 7
"""Maximum number of groups that a round of a closed form has by itself."""

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
    """Number of records from which on clients weigh the same, also without helpers; with noise all do."""

    groups: int = Field(0, ge=0, le=MOST_GROUPS)
    """Number of groups of clients with a sum each; the model takes the median of the groups' means.

    Groups are drawn anew in each round of a network. From three on, liars in fewer than half of them cannot decide it. Noise
    grows by about 1.2·√G, since each sum has G times fewer clients. A round needs `min-sum` clients in each.
    Closed forms add the groups' statistics up, and a table of a group counts at 1.5 times the median norm at most.
    0 chooses: three without noise where a round has four times `min-sum` clients, else one. Closed forms have up to seven,
    each of twice `min-sum` clients. With noise, norms are proven."""

    @field_validator("groups")
    @classmethod
    def _check_groups(cls, value: int) -> int:
        if value == 2:
            raise ValueError("the median of two groups is their mean; say 1, or at least 3")
        return value

    @property
    def fewest(self) -> int:
        """Minimum number of clients in a round."""
        return self.min_sum * max(self.groups, 1)

    def groups_of(self, clients: int, *, of_statistics: bool) -> int:
        """Return the number of groups that 0 chooses, in rounds of so many clients whose sums nothing bounds."""
        smallest, found = 2 * self.min_sum, FEWEST_GROUPS * (clients >= (FEWEST_GROUPS + 1) * self.min_sum)
        found = min(clients // smallest, GROUPS_OF_STATISTICS) if of_statistics else found
        return self.groups or (found if found >= FEWEST_GROUPS else 1)
