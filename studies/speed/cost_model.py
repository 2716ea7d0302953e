"""Cost of a round, t = a + b·nodes + c·clients/W, fitted to stored runs of W processes.

`python -m studies speed cost_model` remakes the section of docs/explanation/scale.md. The runs are those of
`python -m studies speed population --clients 10 100 1000 10000 --rounds 8 --replies auto --under sizes`, and for the speed
of the machine in that hour `--clients 2000 --rounds 8 --under sizes_again`. a and c are fitted to the processor time of
rounds in one process. b is the slope over clients with streams of their own, which `round_latency` measures.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from common.arrays import Floats
from studies.harness.study import RESULTS, ROOT

PAGE = ROOT / "docs" / "explanation" / "scale.md"
MARKS = ("<!-- cost model -->", "<!-- end of cost model -->")

TRAINED = 73_700
"""Homes of the paper that train, for stored runs without this number."""

MILLION, HUB = 10**6, 125
"""Clients, and clients of a hub, in the calculation for a million clients."""


class CostModel(NamedTuple):
    """Model of a round's seconds."""

    start: float
    """a: seconds of a round without clients."""
    node: float
    """b: seconds for each node that the server asks."""
    client: float
    """c: seconds of one process for each client that it trains."""

    def seconds(self, clients: float, nodes: float = 0, workers: float = 1) -> float:
        """Return the seconds of a round."""
        return self.start + self.node * nodes + self.client * clients / workers


def fit(rows: Sequence[Mapping[str, Any]], node: float) -> CostModel:
    """Return the model of runs of different sizes, by least squares of relative errors."""
    clients, seconds = points(rows)
    scaled = np.stack([1 / seconds, clients / seconds], axis=1)
    start, client = np.linalg.lstsq(scaled, np.ones(len(clients)), rcond=None)[0]
    return CostModel(float(start), node, float(client))


def points(rows: Sequence[Mapping[str, Any]]) -> tuple[Floats, Floats]:
    """Return the training clients of each run, and the processor seconds of its median round."""
    clients = np.array([row.get("trained", TRAINED) for row in rows], np.float64)
    return clients, clients * [row["ms_cpu_per_update"] / 1000 for row in rows]


def section(population: Mapping[str, Any], direct: Mapping[str, Any]) -> str:
    """Return the section on the model and a million clients.

    Args:
        population: Content of `population.json`, with the fitted runs under `sizes` and a run of 2,000 homes in the same hour
            under `sizes_again`.
        direct: Content of `round_latency.json`.
    """
    rows, node = population["sizes"]["rows"], direct["per_client"]["resident, memory"]
    model, (slowness, largest) = fit(rows, node), _check(population)
    table = "\n".join(_row(model, row) for row in (*rows, largest))
    errors = [abs(_error(model, row)) for row in rows]
    small, large = rows[-2:]
    error = _error(model, largest)
    return f"""A round takes t = a + b·nodes + c·clients/W seconds, with W processes that each have a core. A node is a client
or a hub that the server asks. Fitted values: a = {model.start:.3f} s, b = {model.node:.4f} s, c = {1000 * model.client:.3f} ms.
`python -m studies speed cost_model` makes this section from [population.json](../results/population.json) and
[round_latency.json](../results/round_latency.json). a and c are fitted to the first {len(rows)} rows.

| homes | of them train | processor time of a round | by the model | error |
|---|---|---|---|---|
{table}

The fitted rows differ from the model by up to {100 * max(errors):.0f} %, so the cost is no exact line. An update takes
{small["ms_cpu_per_update"]:.2f} ms with {small["clients"]:,} homes and {large["ms_cpu_per_update"]:.2f} ms with \
{large["clients"]:,}: only the larger run sums replies in blocks. The last row is the check and was not fitted.
The machine was slower when the fitted runs were made: 2,000 homes took {slowness:.2f} times their earlier processor time.
The last row is multiplied by that, and there the model errs by {100 * error:+.0f} %. It errs by \
{100 * (slowness * (1 + error) - 1):+.0f} % against the time as it was
measured. Two processes are not W = 2: they take .12 ms more an update (see above).

| a million FedRule clients by the model | clients a round | nodes that a server asks | s a round |
|---|---|---|---|
{_million(model)}"""


def _check(population: Mapping[str, Any]) -> tuple[float, dict[str, Any]]:
    """Return how much slower the machine was for the fitted runs, and the largest run at that speed."""
    [again] = population["sizes_again"]["rows"]
    rows = {row["clients"]: row for row in population["rows"]}
    slowness = again["ms_cpu_per_update"] / rows[again["clients"]]["ms_cpu_per_update"]
    largest = rows[max(rows)]
    return slowness, {**largest, "ms_cpu_per_update": slowness * largest["ms_cpu_per_update"]}


def _row(model: CostModel, row: Mapping[str, Any]) -> str:
    [trained], [seconds] = points([row])
    expected, error = model.seconds(trained), 100 * _error(model, row)
    return f"| {row['clients']:,} | {trained:,.0f} | {seconds:.3f} s | {expected:.3f} s | {error:+.0f} % |"


def _error(model: CostModel, row: Mapping[str, Any]) -> float:
    [trained], [seconds] = points([row])
    return float(model.seconds(trained) / seconds - 1)


def _million(model: CostModel) -> str:
    hubs, some = MILLION // HUB, MILLION // 100
    ways = [
        ("one process", MILLION, "", model.seconds(MILLION)),
        ("one process", some, "", model.seconds(some)),
        ("each with a node of its own", some, f"{some:,}", model.seconds(1, some)),
        (f"{hubs:,} hubs of {HUB}", MILLION, f"{hubs:,}", model.seconds(HUB, hubs)),
    ]
    return "\n".join(f"| {name} | {clients:,} | {nodes} | {seconds:,.0f} |" for name, clients, nodes, seconds in ways)


def main() -> None:
    """Remake the section."""
    before, _, rest = PAGE.read_text("utf-8").partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    PAGE.write_text(f"{before}{MARKS[0]}\n{section(*stored())}\n{MARKS[1]}{after}", "utf-8")
    print(PAGE)


def stored(folder: Path = RESULTS) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the contents of `population.json` and `round_latency.json`."""
    population, direct = (
        json.loads((folder / f"{name}.json").read_text("utf-8")) for name in ("population", "round_latency")
    )
    return population, direct
