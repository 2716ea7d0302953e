"""Partitions of units among clients by the schemes that studies of drift name.

Units stay whole; a unit's class is its tenth in the order of labels. Sizes, Dir(α) without balancing and shards
(`pathological`) are those of flwr-datasets for a seed, but its PathologicalPartitioner may leave classes out.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from common.arrays import Floats, Ints
from common.errors import ConfigError, DataError
from common.text import hint

CLASSES = 10
"""Number of classes of units."""

MOST = 1e6
"""Largest number of a scheme; sums of larger α lose their digits."""

ATTEMPTS = 10
"""Number of draws of a Dirichlet partition until each client has a unit."""

SIZES: dict[str, Callable[[Floats], Floats]] = {
    "iid": np.ones_like,
    "linear": lambda number: number,
    "square": np.square,
    "exponential": np.exp,
}
"""Scheme by size alone -> size of the k-th client, from 1, up to a factor."""

BY_LABEL = {"dirichlet": "dirichlet:0.3", "pathological": "pathological:2"}
"""Scheme by label -> example."""

NAMES = (*SIZES, *BY_LABEL)


@dataclass(frozen=True)
class Scheme:
    """Partition by name: by sizes, by Dir(α), or by shards.

    Dir(α) is that of Hsu et al. 2019, shards are those of McMahan et al. 2017.

    Args:
        name: Name of the scheme.
        number: α of `dirichlet`, or N of `pathological`, the number of shards of units in order of labels for each client.
    """

    name: str
    number: float = 0.0

    def divide(self, labels: Floats, clients: int, seed: int = 0) -> list[Ints]:
        """Return the numbers of each client's units, ascending.

        Args:
            labels: Label of each unit.
            clients: Number K of clients.
            seed: Seed of the partition.

        Raises:
            DataError: A client would have no unit.
        """
        rng, units = np.random.default_rng(seed), len(labels)
        if self.name in SIZES:
            sizes = SIZES[self.name](np.arange(1.0, clients + 1))
            ends = (sizes / sizes.sum() * units).astype(np.int64).cumsum()[:-1]
            portions = np.array_split(rng.permutation(units), clients if self.name == "iid" else ends)
        elif self.name == "dirichlet":
            portions = self._draw(labels, clients, seed)
        else:
            if (needed := clients * int(self.number)) > units:
                raise DataError(f"--partition {self} makes {needed:,} shards of {units:,} units; lower it or --clients")
            shards = np.array_split(np.argsort(labels, kind="stable"), needed)
            rows = rng.permutation(len(shards)).reshape(clients, -1)
            portions = [np.concatenate([shards[k] for k in row.tolist()]) for row in rows]
        if empty := sum(not len(part) for part in portions):
            raise DataError(f"--partition {self} leaves {empty} of {clients} clients without data; lower --clients")
        return [np.sort(part) for part in portions]

    def _draw(self, labels: Floats, clients: int, seed: int) -> list[Ints]:
        """Assign the units of each class by proportions of Dir(α)."""
        rng, order = np.random.default_rng(seed), np.random.default_rng([seed, 1])
        classes = np.array_split(np.argsort(labels, kind="stable"), CLASSES)
        portions: list[Ints] = []
        for _ in range(ATTEMPTS):
            owned: list[list[Ints]] = [[] for _ in range(clients)]
            for members in classes:
                ends = (rng.dirichlet([self.number] * clients).cumsum() * len(members)).astype(np.int64)
                for one, part in zip(owned, np.split(order.permutation(members), ends[:-1]), strict=True):
                    one.append(part)
            portions = [np.concatenate(one) for one in owned]
            if all(map(len, portions)):
                break
        return portions

    def __str__(self) -> str:
        return f"{self.name}:{self.number:g}" if self.number else self.name


def scheme_of(text: str) -> Scheme | None:
    """Return the scheme of a value of `--partition`; None for the title of a column.

    Raises:
        ConfigError: The scheme has no such number.
    """
    name, mark, number = text.partition(":")
    if name in SIZES and not mark:
        return Scheme(name)
    if name not in BY_LABEL:
        if mark and name in SIZES:
            raise ConfigError(f"--partition {text}: {name} takes no number; use --partition {name}")
        if mark and hint(name, NAMES) and number.replace(".", "").isdigit():
            raise ConfigError(f"--partition {text}: unknown scheme '{name}'{hint(name, NAMES)}")
        return None
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    is_whole = value == int(value) if math.isfinite(value) else False
    if not (0 < value <= MOST and (name == "dirichlet" or is_whole)):
        raise ConfigError(f"--partition {text}: give a number above 0, at most {MOST:,.0f}, such as {BY_LABEL[name]}")
    return Scheme(name, value)


def most_frequent(*values: Ints) -> float:
    """Return the most frequent number, a unit's label; the smallest of several, −1 without any."""
    numbers = np.concatenate([np.zeros(0, np.int64), *values])
    return float(np.bincount(numbers).argmax()) if len(numbers) else -1.0
