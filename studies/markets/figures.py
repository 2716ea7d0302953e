"""Figures of the markets study: related pairs of XMarket, and new items of Online Retail."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from studies.harness.headline import Entry, Headline
from studies.harness.results import Results
from studies.markets.retail import MARKETS, RETAIL

_COLD = f"{RETAIL}/cold"

NEW_ITEMS = Headline(
    "markets",
    "items that are new in one of eleven markets of Online Retail",
    "MRR@20 in %",
    higher=True,
    digits=1,
    scale=100,
    entries=(
        Entry("local GNN", f"{_COLD}/local", "mrr20", "", MARKETS),
        Entry("F-GNN", f"{_COLD}/fedavg", "mrr20", "", MARKETS),
        Entry("PF-GNN", f"{_COLD}/pfgnn", "mrr20", "", MARKETS),
        Entry("PF-GNN+", f"{_COLD}/pfgnn-plus", "mrr20", "", MARKETS),
        Entry("popularity", f"{_COLD}/degree", "mrr20", "alone", MARKETS),
        Entry("nearest texts", f"{_COLD}/text", "mrr20", "", MARKETS),
        Entry("popularity and others' counts", f"{_COLD}/shared", "mrr20", "pooled", MARKETS),
        Entry("default", f"{_COLD}/ridge", "mrr20", "default", MARKETS),
    ),
)
"""Headline on items that have texts and no pairs."""


@dataclass(frozen=True)
class MarketsHeadline(Headline):
    """Headline of the markets study, with a sentence and a figure on new items."""

    def section(self, results: Results, study: str) -> Iterator[str]:
        """Yield both verdicts and both figures, as Markdown."""
        _, figure = super().section(results, study)
        _, new_items = NEW_ITEMS.section(results, f"{study}-new-items")
        yield f"**Verdict.** {self.sentence(results)} {NEW_ITEMS.sentence(results)}"
        yield figure
        yield new_items

    def draw(self, results: Results, path: Path) -> None:
        """Write both figures."""
        super().draw(results, path)
        NEW_ITEMS.draw(results, path.with_stem(f"{path.stem}-new-items"))
