"""The seven markets, and which of them are small."""

from dataclasses import dataclass, replace
from pathlib import Path

from client.tasks.markets.data.markets import Market, Markets
from client.tasks.markets.data.reader import read_markets
from common.errors import ConfigError

SMALL = ("fr", "de", "mx", "jp", "in")
"""The five that the targets speak of."""

MARKETS = ("ca", "de", "fr", "in", "jp", "mx", "uk")
"""In the order of the clients."""

PROTOCOLS = {
    "pairs": "Random pairs: 10 % of the undirected pairs (at least two users) are asked for",
    "users": "Held-out users: pairs of 10 % of the users that nobody else has, all co-rated pairs counting",
    "cold": "Items cold in this market: 10 % of the items lose all their pairs and are the only queries",
}


@dataclass(frozen=True)
class XMarket:
    """The data set.

    Args:
        whole: All markets under one catalogue.
        catalogue: The catalogue's file.
    """

    whole: Markets
    catalogue: Path

    @classmethod
    def read(cls, folder: Path, cache: Path) -> "XMarket":
        """Read it from the folder of data sets.

        Raises:
            ConfigError: It is not there.
        """
        source = folder / "xmarket-electronics"
        if not source.is_dir():
            raise ConfigError(f"{source} is missing; name the folder of data sets with --data")
        whole, catalogue = read_markets(source), cache / "catalogue.json"
        cache.mkdir(parents=True, exist_ok=True)
        catalogue.write_text(whole.vocabulary.to_json(), "utf-8")
        return cls(whole, catalogue)

    @property
    def names(self) -> list[str]:
        """In the order of the clients."""
        return [market.name for market in self.whole.units]

    def market(self, name: str) -> Market:
        """The market of that name."""
        return next(market for market in self.whole.units if market.name == name)

    def without(self, name: str) -> list[Markets]:
        """All other markets, a client each."""
        return [replace(self.whole, units=(one,)) for one in self.whole.units if one.name != name]
