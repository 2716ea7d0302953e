"""Groups of clients in a round, each with a sum of its own, and the median of their means. NumPy."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from server.aggregation.round_results import Opened

FEWEST_GROUPS = 3
"""Number of groups from which on one of them cannot decide the median."""

STREAM = 0x6720
"""Mark of the random stream of groups, beside those of other choices of a round."""


def assign(clients: Iterable[str], groups: int, seed: int, number: int, earlier: Mapping[str, int]) -> dict[str, int]:
    """Return client -> group for a round, in groups of nearly equal size.

    Args:
        clients: Names of the clients.
        groups: Number G of groups.
        seed: Seed of the run.
        number: Number of the round.
        earlier: Groups of clients that were asked in this round before; they stay.
    """
    found = {name: group for name, group in earlier.items() if group < groups}
    new = sorted(set(clients) - found.keys())
    np.random.default_rng([seed, number, STREAM]).shuffle(new)
    sizes = np.bincount([*found.values()], minlength=groups)
    for name in new:
        found[name] = int(sizes.argmin())
        sizes[found[name]] += 1
    return found


def median_of(groups: Sequence[Opened]) -> Opened:
    """Return the coordinate-wise median of the groups' means; one group alone unchanged.

    Fewer than half of the groups cannot move a number beyond the means of the others (breakdown point (G − 1)/2G of
    the groups). |Δ̄| ≤ Δ' holds for medians as for means.
    """
    if len(groups) == 1:
        return groups[0]
    first = groups[0]
    means = {
        name: np.median(np.stack([one.means[name] for one in groups]), axis=0).astype(a.dtype)
        for name, a in first.means.items()
    }
    steps = {name: number for one in groups for name, number in one.steps.items()}
    names = sorted(name for one in groups for name in one.names)
    return Opened(names, steps, means, first.configured_steps, first.per_step)
