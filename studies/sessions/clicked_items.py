"""Agreement of the clients on rows of the item table, by the number of clients that clicked the item."""

from collections.abc import Iterator
from dataclasses import replace

from studies.harness.results import Results
from studies.harness.row import in_order, mean_sd
from studies.harness.table import Table
from studies.sessions.experiments import SEEDS, make_row

SET, PROTOCOL = "gowalla", "clicked-items"

METHOD = "fedga_by_clicks"
"""Method of the rows, which is FedGA; the study adds it to the registries of its process."""

GROUPS = {"none": "no client", "one": "1", "few": "2 to 4", "many": "5 or more"}
"""Group of items -> clients of the round that clicked them."""

LEAST = {"none": 0, "one": 1, "few": 2, "many": 5}
"""Group of items -> least number of clients."""

SHARE, MAGNITUDE, QUANTILES = "share", "magnitude", ("p25", "p50", "p75")
"""Numbers of a group: share of the items, mean Δ' over that of all items, quantiles of agreement."""

ABOUT = """FedGA (`saturated`, ηₛ .02, τ 1e-4), 100 clients a round. Agreement is |Δ̄|/Δ' over the numbers of an item's row.
Items are grouped by how many clients of the round have them in their training sessions. Where one client alone moves a number,
agreement is 1. The last column is the group's mean Δ' over that of all items. Means over all rounds."""

ROWS = (
    replace(
        make_row("fedga", "FedGA, `saturated`", METHOD, ({"server-lr": 0.02, "tau": 1e-4},)),
        protocol=PROTOCOL,
        seeds=SEEDS,
    ),
)


def names_of(group: str) -> tuple[str, ...]:
    """Return the names of a group's numbers: share of the items, quantiles of agreement, relative Δ'."""
    return tuple(f"{group}_{name}" for name in (SHARE, *QUANTILES, MAGNITUDE))


NUMBERS = tuple(name for group in GROUPS for name in names_of(group))
"""Numbers of a round that are stored as means over all rounds."""


def section(results: Results) -> Iterator[str]:
    """Yield the section of the page; nothing before a row is measured."""
    for row in in_order(results.rows_of(SET, PROTOCOL), [one.key for one in ROWS]).values():
        table = Table(["clients that clicked", "share of items", "25 % of agreement", "50 %", "75 %", "Δ' to the mean"])
        for group, title in GROUPS.items():
            table.rows.append([title, *(mean_sd(row.values(name).values(), 3) for name in names_of(group))])
        yield f"## Agreement by clicks on Gowalla\n\n{ABOUT} {len(row.trials)} seeds.\n\n{table}"
