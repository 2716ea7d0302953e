"""Warnings about market data under a run's options."""

from collections.abc import Iterator, Sequence

import numpy as np

from client.tasks.markets.data.graph import graph_of
from client.tasks.markets.data.markets import Market, Markets
from client.tasks.markets.data.split import least_users
from common.tasks.markets.options import MarketsOptions
from common.text import count

MOST = 0.5
"""Share of a market's items without a pair from which on it is worth saying."""


def warn(options: MarketsOptions, dataset: Markets) -> Iterator[str]:
    """Yield what the owner should know about markets before training."""
    yield from _pairless(dataset.units, options)
    yield from _unshared(dataset.units, options)


def _pairless(markets: Sequence[Market], options: MarketsOptions) -> Iterator[str]:
    """Yield a warning of markets of ratings most of whose items are in no pair."""
    pairless, least = [], least_users(options)
    for market in markets:
        sold, paired = len(np.unique(market.ratings[:, 1])), len(graph_of(market, least).items)
        if not market.listed and sold - paired > MOST * sold:
            pairless.append(
                f"{sold - paired:,} of {count(sold, 'item')} in {market.name} ({count(len(market.ratings), 'rating')})"
            )
    if pairless:
        needed = f"a pair of items needs {count(least, 'user')} of both (tasks.markets.co-rating)"
        yield f"{needed}: {', '.join(pairless)} have none, so nothing is trained on or measured of those"


def _unshared(markets: Sequence[Market], options: MarketsOptions) -> Iterator[str]:
    """Yield a warning of markets whose counts are not shared because of noise."""
    names = [market.name for market in markets if market.listed]
    if names and options.count_offset and options.count_epsilon:
        yield (
            f"lists in {', '.join(names)} name no users whom noise could hide, so their counts are not shared: a run with"
            " --set tasks.markets.count-epsilon=0 shares them in plaintext where each client's policy has allow-counts"
        )
