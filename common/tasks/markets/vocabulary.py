"""Vocabulary of the markets task."""

from typing import Self

from pydantic import model_validator

from common.tasks.vocabulary import Vocabulary, check_names


class MarketCatalogue(Vocabulary):
    """The public catalogue that all markets share; a market sells some of it."""

    items: tuple[str, ...]
    """Item ids, V of them."""

    titles: tuple[str, ...] = ()
    """A title of each, empty where it has none; no titles at all where the catalogue has no text."""

    descriptions: tuple[str, ...] = ()
    """A description of each, like the titles."""

    @model_validator(mode="after")
    def _every_item_is_one(self) -> Self:
        check_names("an item", self.items)
        for name, texts in (("titles", self.titles), ("descriptions", self.descriptions)):
            if texts and len(texts) != len(self.items):
                raise ValueError(
                    f"{len(texts)} {name} for {len(self.items)} items; give every item one, or none at all"
                )
        return self

    @classmethod
    def what(cls) -> str:
        """What the names name, for error texts."""
        return "items"

    def text(self, item: int) -> str:
        """Title and description of the item of that index; empty where it has neither."""
        parts = [texts[item] for texts in (self.titles, self.descriptions) if texts]
        return " ".join(part for part in parts if part.strip())
