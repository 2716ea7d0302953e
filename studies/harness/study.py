"""Study: one folder of stored results, the page made from it, and the runs that fill it."""

import os
import platform
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from studies.harness.results import Results, run_files
from studies.harness.split_page import split_page

if TYPE_CHECKING:
    from studies.harness.headline import Opening

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("FEDLOOM_SHARED_DATA", ROOT.parent / "shared" / "data"))
RESULTS = ROOT / "docs" / "results"
PACKAGES = ("fedloom", "flwr", "torch", "torch-geometric", "numpy")
HOMES_CHANGED = "2026-11-28T01:30"
"""Last change of the homes that `demo` generates; rows of before are of other homes."""

MARKS = ("<!-- table -->", "<!-- end of table -->")
STUDIES = ("rules", "sessions", "traffic", "ratings", "markets", "robustness", "lies", "audit", "privacy", "homes")


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
    """One study: package `studies.<name>`, results `<name>/`, page `<name>.md`.

    Args:
        name: One of `STUDIES`.
        folder: Folder of all results.
    """

    name: str
    folder: Path = RESULTS

    def results(self) -> Results:
        """Read the stored results."""
        return Results.load(self.folder / self.name)

    def pages(self) -> dict[str, str]:
        """Return file name -> text of the page, and of the tables that do not fit on it.

        They follow from the stored results; neither data nor cache are read.
        """
        results = self.results()
        sections: Iterable[str] = import_module(f"studies.{self.name}.page").page(results, self._provenance(results))
        title, _, rest = "\n\n".join(sections).partition("\n\n")
        headline = _headline(self.name).section(results, self.name) if results.rows else ()
        return _files("\n\n".join([title, *headline, rest]) + "\n", self.name)

    def write_page(self) -> Path:
        """Write the page, its tables and its figure; return the page's path."""
        if (results := self.results()).rows:
            (self.folder / "assets").mkdir(parents=True, exist_ok=True)
            _headline(self.name).draw(results, self.folder / "assets" / f"{self.name}.svg")
        return _write(self.pages(), self.folder, self.name)

    def run(self, selection: Selection, cache: Path) -> None:
        """Compute what neither the stored results nor the cache hold, and store it."""
        from studies.harness.store import Store  # the only import that pages do without

        now = provenance()
        results = self.results()
        results.made = results.made or {**now, "cores": os.cpu_count()}
        store = Store(cache, results, now)
        import_module(f"studies.{self.name}.runs").compute(selection, store)
        results.save(self.folder / self.name)

    def _provenance(self, results: Results) -> str:
        """Return the first paragraph of the page."""
        made = results.made
        newest = max([made.get("made", ""), *(row.about.made for row in results.rows.values())])
        versions = ", ".join(f"{name} {number}" for name, number in made.get("versions", {}).items())
        files = ", ".join(f"[{file.name}]({self.name}/{file.name})" for file in run_files(self.folder / self.name))
        return (
            f"Made by `python -m studies page {self.name}` from {files} and"
            f" [rows.json]({self.name}/rows.json), not edited by hand. Measurements up to {newest[:10]}, with"
            f" {versions}; {made.get('cores', '')} shared CPU cores, one thread a run.{self._older_homes(results)}"
        )

    def _older_homes(self, results: Results) -> str:
        """Return a sentence on rows of homes that are generated otherwise now; empty without such rows."""
        rows = [row for key, row in results.rows.items() if "rules" in (self.name, *key) and key.set not in ("A", "B")]
        days = results.days_before(HOMES_CHANGED, rows)
        text = " Rows on generated homes are of {}, by the generator of their day; homes have other devices and rules since."
        return text.format(", ".join(days)) if days else ""


def write_readme(path: Path = ROOT / "README.md", folder: Path = RESULTS) -> None:
    """Write the table of results between the marks of README.md."""
    from studies.harness.headlines import readme_table

    before, _, rest = path.read_text("utf-8").partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    table = readme_table(all_results(folder))
    path.write_text(f"{before}{MARKS[0]}\n{table}\n{MARKS[1]}{after}", "utf-8")


def all_results(folder: Path = RESULTS) -> dict[str, Results]:
    """Read the stored results of all studies."""
    return {name: Study(name, folder).results() for name in STUDIES}


def write_claims(folder: Path = RESULTS) -> Path:
    """Write `claims.csv` and `claims.md`; return the page's path."""
    from studies.harness.paper_claim import claims_csv, claims_page, judge  # they import the studies
    from studies.harness.papers import CLAIMS

    judged = judge(CLAIMS, all_results(folder))
    (folder / "claims.csv").write_text(claims_csv(judged), "utf-8")
    return _write(_files(claims_page(judged), "claims"), folder, "claims")


def write_worth(folder: Path = RESULTS) -> Path:
    """Write `worth.md`; return its path."""
    from studies.harness.worth import worth_page

    return _write(_files(worth_page(all_results(folder)), "worth"), folder, "worth")


def _files(text: str, name: str) -> dict[str, str]:
    """Return file name -> text of a page, and of the tables that do not fit on it."""
    page, rest = split_page(text, name)
    return {f"{name}.md": page, **({f"{name}/tables.md": rest} if rest else {})}


def _write(files: Mapping[str, str], folder: Path, name: str) -> Path:
    """Write a page with its tables, or without if all fit on it; return the page's path."""
    (folder / name / "tables.md").unlink(missing_ok=True)
    for file, text in files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text, "utf-8")
    return folder / f"{name}.md"


def _headline(name: str) -> "Opening":
    """Return the headline of a task's study, or the own one of another study."""
    from studies.harness.headlines import HEADLINES  # it imports the studies

    own: Opening = HEADLINES.get(name) or import_module(f"studies.{name}.headline").HEADLINE
    return own


def provenance() -> dict[str, Any]:
    """Return time and versions of this process."""
    versions = {**{name: version(name) for name in PACKAGES}, "python": platform.python_version()}
    return {"made": datetime.now(UTC).isoformat(timespec="seconds"), "versions": versions}
