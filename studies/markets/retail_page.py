"""Part of the markets page on Online Retail."""

from collections.abc import Iterator

from studies.harness.claim import bullet_list
from studies.harness.results import Results
from studies.harness.row import Row, RowKey, in_order, mean_sd
from studies.harness.table import Table
from studies.markets import prose
from studies.markets.retail import GRIDS, MAIN, MARKETS, PROTOCOLS, RETAIL, TITLES
from studies.markets.retail_claims import of_default, of_networks, of_ranking, values_of

ORDER = ("mean", *MARKETS)


def sections(results: Results) -> Iterator[str]:
    """Yield introduction, a table and the claims of each protocol, and the grid; nothing without rows."""
    rows = {protocol: in_order(results.rows_of(RETAIL, protocol), TITLES) for protocol in PROTOCOLS}
    if not any(rows.values()):
        return
    yield prose.RETAIL
    for protocol, measured in rows.items():
        if measured:
            table = Table(["", "seeds", *ORDER], [_cells(row) for row in measured.values()])
            yield f"### {PROTOCOLS[protocol]}\n\n{table}"
            yield bullet_list([*of_default(measured), *of_networks(measured), *of_ranking(measured)])
    yield from _grids(results)


def _cells(row: Row) -> list[str]:
    return [row.title, str(len(row.trials)), *(_pair(row, market) for market in ORDER)]


def _pair(row: Row, market: str) -> str:
    """Return MRR@20 / NDCG@20."""
    return " / ".join(mean_sd(values_of(row, metric, market).values(), 1).replace("± ", "±") for metric in MAIN)


def _grids(results: Results) -> Iterator[str]:
    """Return the validation metric of each point of λ_w and λ_s."""
    table = Table(["", "point", "MRR@20 on held-out training pairs"])
    for one in GRIDS:
        row = results.rows.get(RowKey(RETAIL, one.protocol, one.key))
        for point, found in row.about.grid.items() if row else ():
            table.rows.append([one.title, point, f"{100 * found['mrr20']:.1f}" if found else "diverged"])
    if table.rows:
        yield f"{prose.GRID}\n\n{table}"
