"""Time to infer tight parameters of templates 1-7 for 500 clients, and FedSTL's (Tables 3 and 4).

`python -m studies speed stl_inference` gives every client a series of 180 readings, cut into 14 traces of 24 steps
overlapping by 12. One formula is one window [i, i+1] (one span, for implications), as the paper's index runs; 5, 10 and 15
formulas are so many windows. All clients are inferred at once: `batch` is the seconds of all of them, `a_client` those
divided by the clients. The paper's "s a formula, 500 clients" does not say whether it is one client's formula, to which
`times` compares `a_client`, or all clients', to which `times_undivided` compares `batch`. Prints a table and writes JSON,
each with a sentence on that.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from common.logic import inference
from common.logic.inference import Window, windows
from studies.speed import timing

LENGTH, STEPS = 180, 24
ENOUGH = 50
"""Target: times faster than published."""
PUBLISHED = {
    "1 operational range": {1: 0.0032, 5: 0.0166, 10: 0.0317, 15: 0.0469},
    "2 existence": {1: 0.0052, 5: 0.0253, 10: 0.0521, 15: 0.0769},
    "3 until": {1: 0.0111, 5: 0.0532, 10: 0.1101, 15: 0.1607},
    "4 intra-task": {1: 0.0065, 5: 0.0327, 10: 0.0647, 15: 0.0966},
    "5 implication": {1: 0.0239, 5: 0.1216, 10: 0.2443, 15: 0.3588},
    "6 nested": {1: 0.0251, 5: 0.1224, 10: 0.2421, 15: 0.3684},
    "7 eventualities": {1: 0.0274, 5: 0.1390, 10: 0.2832, 15: 0.4173},
}
"""Seconds by number of formulas: Table 3, then Table 4."""

Way = Callable[[tuple[Window, ...]], object]


def ways(x: Tensor, y: Tensor) -> dict[str, Way]:
    """Return template -> its inference from windows; x and y are C x S x T."""
    delay = (1, 5)
    return {
        "1 operational range": lambda over: inference.infer_operational_range(x, over, "x"),
        "2 existence": lambda over: inference.infer_existence(x, over, "x"),
        "3 until": lambda over: inference.infer_until(x, over, "x"),
        "4 intra-task": lambda over: inference.infer_intra_task(x, y, over, "x", "y"),
        "5 implication": lambda over: [inference.infer_implication(x, span, delay, "x") for span in over],
        "6 nested": lambda over: [inference.infer_nested(x, y, span, delay, "x", "y") for span in over],
        "7 eventualities": lambda over: inference.infer_eventualities(x, over, "x"),
    }


def seconds(way: Way, over: tuple[Window, ...], repetitions: int) -> float:
    """Return the median seconds of the whole batch of clients."""
    return timing.median_seconds(lambda: way(over), repetitions, warm_up=True)


def run_of(name: str, way: Way, formulas: int, clients: int, repetitions: int) -> dict[str, Any]:
    """Return one cell of the tables."""
    batch = seconds(way, windows(STEPS, 2, 1)[:formulas], repetitions)
    published = PUBLISHED[name][formulas]
    per_client = batch / clients
    return {"template": name, "formulas": formulas, "batch": batch, "a_client": per_client, "published": published} | {
        "times": published / per_client,
        "times_undivided": published / batch,
    }


def about(runs: Sequence[Mapping[str, Any]], clients: int) -> str:
    """State what the two ratios compare, and their ranges over all cells."""
    divided, undivided = ([run[key] for run in runs] for key in ("times", "times_undivided"))
    enough = sum(ratio >= ENOUGH for ratio in undivided)
    return (
        f"'times' reads the published seconds as those of one client's formula and divides ours, of the batch, by its"
        f" {clients} clients: {min(divided):,.0f} to {max(divided):,.0f}. If the published seconds are of all clients, nothing"
        f" may be divided and 'undivided' holds: {min(undivided):,.1f} to {max(undivided):,.1f},"
        f" {ENOUGH} or more in {enough} of {len(undivided)} cells."
    )


def main() -> None:
    """Measure, print, write."""
    parser = timing.options(__doc__, "stl_inference")
    parser.add_argument("--clients", type=int, default=500)
    parser.add_argument("--repetitions", type=int, default=9)
    options = parser.parse_args()
    threads = timing.use_few_threads()

    series = torch.randn(2, options.clients, LENGTH, generator=torch.Generator().manual_seed(0))
    x, y = series.unfold(-1, STEPS, STEPS // 2).contiguous()
    title = f"{options.clients} clients x {LENGTH} readings ({x.shape[1]} traces of {STEPS}), seconds"
    table = Table("template", "formulas", "batch", "a client", "published", "times", "undivided", title=title)
    runs = []
    for name, way in ways(x, y).items():
        for formulas in PUBLISHED[name]:
            run = run_of(name, way, formulas, options.clients, options.repetitions)
            table.add_row(
                name,
                str(formulas),
                f"{run['batch']:.5f}",
                f"{run['a_client']:.1e}",
                f"{run['published']}",
                f"{run['times']:,.0f}",
                f"{run['times_undivided']:,.1f}",
            )
            runs.append(run)
    sentence = about(runs, options.clients)
    Console().print(table, sentence)
    result = {"clients": options.clients, "length": LENGTH, "threads": threads, "about": sentence, "runs": runs}
    timing.write(options.out, result, "torch")
