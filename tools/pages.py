"""Pages of the repository: headings, links, code blocks and sentences.

`python -m tools.pages` copies the files of titled code blocks into the pages again.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
GENERATED = (
    "rules",
    "sessions",
    "traffic",
    "ratings",
    "markets",
    "robustness",
    "audit",
    "privacy",
    "secure",
    "claims",
    "worth",
)
"""Result pages that `python -m studies page`, `claims` and `worth` write."""

FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^(?P<marks>#{1,6}) (?P<text>.+)$", re.MULTILINE)
LINK = re.compile(r"\]\((?P<target>[^()\s]+)\)")
TITLE = re.compile(r'title="(?P<path>[^"]+)"')
END = re.compile(r"(?<=[.!?])\s+|\s*\|\s*|\n\s*\n|\n\s*(?=[-*] )|\n(?=#)")
"""Ends of sentences: also table cells, paragraphs, items of a list and headings."""


@dataclass(frozen=True)
class Block:
    """Code block of a page.

    Args:
        page: Page that holds it.
        line: One-based line of its first fence.
        info: Text after the first fence, such as `sh`.
        text: Content.
    """

    page: Path
    line: int
    info: str
    text: str

    @property
    def file(self) -> Path | None:
        """File whose content the block shows; None for a block without a title."""
        title = TITLE.search(self.info)
        return ROOT / title["path"] if title else None


def pages() -> list[Path]:
    """Return the pages whose text is written by hand."""
    found = [
        README,
        *(ROOT / f"{name}.md" for name in ("CONTRIBUTING", "SECURITY")),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("examples/*/README.md"),
    ]
    return sorted(path for path in found if not _is_generated(path))


def _is_generated(path: Path) -> bool:
    folder = ROOT / "docs" / "results"
    return (path.parent == folder and path.stem in GENERATED) or (
        path.parent.parent == folder and path.name == "tables.md"
    )


def blocks(page: Path) -> Iterator[Block]:
    """Yield the code blocks of a page."""
    text = page.read_text("utf-8")
    for match in FENCE.finditer(text):
        yield Block(page, text.count("\n", 0, match.start()) + 1, match["info"], match["text"])


def prose(page: Path) -> str:
    """Return the text of a page without its code blocks."""
    return FENCE.sub("", page.read_text("utf-8"))


def spans(page: Path) -> list[str]:
    """Return the code in the text of a page."""
    return re.findall(r"`([^`\n]+)`", prose(page))


def sentences(page: Path) -> list[str]:
    """Return the sentences of a page; code and the address of a link count as one word."""
    text = re.sub(r"`[^`\n]+`", "code", LINK.sub("]", prose(page)))
    return [sentence.strip(" -*\n") for sentence in END.split(text)]


def headings(page: Path) -> list[str]:
    """Return the headings of a page."""
    return [match["text"] for match in HEADING.finditer(prose(page))]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub names them."""
    names = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings(page)]
    repeated: Counter[str] = Counter()
    found = set()
    for name in names:
        found.add(f"{name}-{repeated[name]}" if repeated[name] else name)
        repeated[name] += 1
    return found


def links(page: Path) -> list[str]:
    """Return the targets of links within the repository."""
    targets = [match["target"] for match in LINK.finditer(prose(page))]
    return [target for target in targets if not re.match(r"[a-z]+:", target)]


def refresh() -> None:
    """Copy the files of titled code blocks into the pages."""
    for page in pages():
        text = page.read_text("utf-8")
        for block in blocks(page):
            if block.file:
                shown = f"```{block.info}\n{block.text}```"
                text = text.replace(shown, f"```{block.info}\n{block.file.read_text('utf-8')}```")
        page.write_text(text, "utf-8")


if __name__ == "__main__":
    refresh()
