"""Vocabulary of the markets task, and that of the generated demo markets."""

import json
from collections.abc import Collection
from functools import cache
from typing import Any, Self

from pydantic import model_validator

from common.tasks.vocabulary import SHELVES, Entry, Vocabulary, check_names


class MarketCatalogue(Vocabulary):
    """Vocabulary of the markets task: public catalogue of all markets; a market has some of its items."""

    items: tuple[str, ...]
    """Ids of the V items."""

    titles: tuple[str, ...] = ()
    """Title of each item, possibly empty; () if the catalogue has no titles."""

    descriptions: tuple[str, ...] = ()
    """Description of each item, possibly empty; () if the catalogue has no descriptions."""

    @model_validator(mode="after")
    def _every_item_is_one(self) -> Self:
        check_names("an item", self.items)
        for name, texts in (("titles", self.titles), ("descriptions", self.descriptions)):
            if texts and len(texts) != len(self.items):
                raise ValueError(
                    f"{len(texts)} {name} for {len(self.items)} items; give one for every item or none at all"
                )
        return self

    def _extend(self, field: str, values: Any, other: Self) -> Any:
        """Return the items of both, or the texts of these; an item that is in both has the text that it had."""
        if field == "items" or not (values or getattr(other, field)):
            return super()._extend(field, values, other)
        mine, added = set(self.items), getattr(other, field) or ("",) * len(other.items)
        texts = (text for item, text in zip(other.items, added, strict=True) if item not in mine)
        return (*(values or ("",) * len(self.items)), *texts)

    def entries(self) -> list[Entry]:
        """Return the items one by one, and their texts."""
        texts = {"titles": self.titles, "descriptions": self.descriptions}
        found: list[Entry] = [("items", item) for item in self.items]
        for field, listed in texts.items():
            found += [(field, item, text) for item, text in zip(self.items, listed, strict=False) if text]
        return found

    @classmethod
    def from_entries(cls, entries: Collection[Entry]) -> Self:
        """Return the catalogue of these entries; of several texts of an item, the first in alphabetical order."""
        items = sorted(entry[1] for entry in entries if entry[0] == "items")
        fields = {"items": items}
        for field in ("titles", "descriptions"):
            texts = {entry[1]: entry[2] for entry in sorted(entries, key=str, reverse=True) if entry[0] == field}
            fields |= {field: [texts.get(item, "") for item in items]} if texts else {}
        return cls.from_json(json.dumps(fields))

    @classmethod
    def noun(cls) -> str:
        """Return the noun of the names, for messages."""
        return "items"

    def text(self, item: int) -> str:
        """Return title and description of the item of that index; empty if it has neither."""
        found = [texts[item] for texts in (self.titles, self.descriptions) if texts]
        return " ".join(part for part in found if part.strip())


@cache
def demo_market_catalogue() -> MarketCatalogue:
    """Return the demo's catalogue, shelf by shelf; on a shelf, kind by kind."""
    titles, descriptions = [], []
    for shelf, (kinds, things) in SHELVES.items():
        for kind in kinds.split(", "):
            for thing in things.split(", "):
                titles.append(f"{kind[0].upper()}{kind[1:]} {thing}")
                descriptions.append(
                    f"From our {shelf} shelf: {thing}, {kind}. Goes with everything {kind} for {shelf}."
                )
    ids = tuple(f"P{number:04d}" for number in range(1, len(titles) + 1))
    return MarketCatalogue(items=ids, titles=tuple(titles), descriptions=tuple(descriptions))


def set_size() -> int:
    """Return the number of items of a set (one kind on one shelf); sets are consecutive and of equal size."""
    return len(next(iter(SHELVES.values()))[1].split(", "))
