"""Page of the study of rule lists, made from stored results alone."""

from collections.abc import Iterator

from studies.harness.claim import Claim, bullet_list
from studies.harness.results import Results
from studies.harness.row import Row, in_order, mean_sd
from studies.harness.table import Table

SET = "homes-60"
ORDER = ("before", "unrefused", "shown")
LEAST_PRECISION = 0.6

INTRODUCTION = """# Lists of rules for homes

{made_by}

Sixty homes are generated for each of five seeds, with areas and devices of Home Assistant. There are 14 kinds of habits: a
light by motion, blinds by the sun, a valve that a leak closes. A home has a kind of habit or has it not. It uses a habit
in nine of ten of its rooms. For five habits it has one odd rule, and some of these are
harmful. Four of ten habits of each home are held out whole, and are the truth. The closed form over the other rules of all
homes gives the scores.

- **Precision@5:** share of held-out rules among the rules shown in lists of five. Odd rules and habits that a home has not are
  misses.
- **Harmful:** share of shown rules that the table of refused pairs names.
- **One device:** share of lists with more than two rules that all act on one device.
- **Rules, empty:** mean number of rules of a list, and share of homes whose list is empty.

Weights and the least score of a list were chosen on homes of other seeds (100 to 102)."""

COLUMNS = {
    "precision5": "precision@5",
    "harmful": "harmful",
    "one_actuator": "one device",
    "length": "rules",
    "empty": "empty",
}


def page(results: Results, made_by: str) -> Iterator[str]:
    """Yield the sections of the page; `made_by` states its provenance."""
    yield INTRODUCTION.format(made_by=made_by)
    if rows := measured(results):
        yield str(Table(["lists", "seeds", *COLUMNS.values()], [_cells(row) for row in rows.values()]))
        yield bullet_list(map(str, claims(rows)))


def measured(results: Results) -> dict[str, Row]:
    """Return the rows that were measured, in their order."""
    return in_order(results.rows_of(SET), ORDER)


def claims(rows: dict[str, Row]) -> Iterator[Claim]:
    """Yield the targets of the lists of today."""
    if "shown" in rows:
        row = rows["shown"]
        precision, harmful, single = (row.mean(key) for key in ("precision5", "harmful", "one_actuator"))
        yield Claim(f"Precision@5 is at least {LEAST_PRECISION:g} ({precision:.3f})", precision >= LEAST_PRECISION)
        yield Claim(f"No harmful rule is shown ({harmful:.3f})", harmful == 0)
        yield Claim(f"No list is about one device ({single:.3f})", single == 0)


def _cells(row: Row) -> list[str]:
    return [row.title, str(len(row.trials)), *(mean_sd(row.values(key).values(), 3) for key in COLUMNS)]
