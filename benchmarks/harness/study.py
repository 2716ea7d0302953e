"""Study: one folder of stored results, the page made from it, and the runs that fill it."""

import os
import platform
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.harness.results import Results

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("FEDLOOM_SHARED_DATA", ROOT.parent / "shared" / "data"))
RESULTS = ROOT / "docs" / "results"
PACKAGES = ("fedloom", "flwr", "torch", "torch-geometric", "numpy")
STUDIES = ("rules", "sessions", "traffic", "ratings", "markets")


@dataclass(frozen=True)
class Selection:
    """Part of a study that a command asks for.

    Args:
        data: Folder of the data sets.
        only: Short names of rows, or `protocol/name`; empty for all.
        sets: Short names of data sets; empty for all.
        most: Largest number of seeds.
    """

    data: Path = DATA
    only: Collection[str] = ()
    sets: Collection[str] = ()
    most: int = 1_000

    def has(self, row: str, protocol: str = "default") -> bool:
        """Return True if the row is selected."""
        return not self.only or row in self.only or f"{protocol}/{row}" in self.only

    def has_set(self, name: str) -> bool:
        """Return True if the data set is selected."""
        return not self.sets or name in self.sets


@dataclass(frozen=True)
class Study:
    """One study: package `benchmarks.<name>`, results `<name>/`, page `<name>.md`.

    Args:
        name: One of `STUDIES`.
        folder: Folder of all results.
    """

    name: str
    folder: Path = RESULTS

    def results(self) -> Results:
        """Read the stored results."""
        return Results.load(self.folder / self.name)

    def page(self) -> str:
        """Return the page that follows from the stored results; neither data nor cache are read."""
        results = self.results()
        sections: Iterable[str] = import_module(f"benchmarks.{self.name}.page").page(results, self._provenance(results))
        return "\n\n".join(sections) + "\n"

    def write_page(self) -> Path:
        """Write the page; return its path."""
        path = self.folder / f"{self.name}.md"
        path.write_text(self.page(), "utf-8")
        return path

    def run(self, selection: Selection, cache: Path) -> None:
        """Compute what neither the stored results nor the cache hold, and store it."""
        from benchmarks.harness.store import Store  # the only import that pages do without

        now = provenance()
        results = self.results()
        results.made = results.made or {**now, "cores": os.cpu_count()}
        store = Store(cache, results, now)
        import_module(f"benchmarks.{self.name}.runs").compute(selection, store)
        results.save(self.folder / self.name)

    def _provenance(self, results: Results) -> str:
        """Return the first paragraph of the page."""
        made = results.made
        versions = ", ".join(f"{name} {number}" for name, number in made.get("versions", {}).items())
        return (
            f"Made by `python -m benchmarks page {self.name}` from [runs.csv]({self.name}/runs.csv) and"
            f" [rows.json]({self.name}/rows.json), not edited by hand. Measurements up to {made.get('made', '')[:10]}, with"
            f" {versions}; {made.get('cores', '')} shared CPU cores, one thread a run."
        )


def provenance() -> dict[str, Any]:
    """Return time and versions of this process."""
    versions = {**{name: version(name) for name in PACKAGES}, "python": platform.python_version()}
    return {"made": datetime.now(UTC).isoformat(timespec="seconds"), "versions": versions}
