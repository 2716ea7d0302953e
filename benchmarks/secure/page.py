"""Page of the study of secure sums, from its stored results alone."""

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.harness.claim import Claim, bullet_list
from benchmarks.harness.table import Table

Row = Mapping[str, Any]

LIMITS = {
    (8, 10**4): (0.1, 0.3, 0.000, 0.061, 0.06),
    (64, 10**4): (0.1, 0.7, 0.000, 0.090, 0.08),
    (1_000, 10**4): (0.1, 0.5, 0.001, 0.21, 0.06),
    (8, 10**5): (5.5, 1.5, 0.000, 0.219, 0.21),
    (64, 10**5): (4.2, 1.8, 0.001, 0.221, 0.20),
    (1_000, 10**5): (6.7, 1.0, 0.06, 0.52, 0.20),
    (8, 10**6): (40.0, 14.0, 0.01, 1.83, 1.8),
    (64, 10**6): (40.0, 18.0, 0.08, 2.37, 2.1),
    (1_000, 10**6): (40.0, 19.0, 1.7, 6.8, 2.0),
}
"""Clients and numbers -> limits of `WORKS`."""

WORKS = {
    "quantise_ms": "Quantising at a client",
    "mask_ms": "Masking and sealing at a client",
    "server_s": "The server's work",
    "helper_s": "A helper's work",
    "noise_s": "Drawing a helper's noise",
}
MEMORY_LIMITS = {"100000": 120.0, "1000000": 180.0}
"""Numbers in a vector -> limit of a helper's memory in MB."""

BYTES_BESIDE = 1_024
"""Limit of an upload's bytes beside the four of each number."""

HEAD = """# Cost of secure sums

Processor time of one sum with noise and two helpers, in one process, with the classes that clients, helpers and the server
use. Messages, disks and networks are left out. In every row the opened sum equals the sum of the clients' integers and both
helpers' noise, number by number; a difference ends the measurement.
`python -m benchmarks.secure run` measures once, `page` writes this page.

The machine had {cores} cores under a load of {load:.1f}.{remark} Times of a client are medians over clients.
The least of five turns counts; at a million numbers there is one turn. The noise is that of ε = 1, δ = 1e-5 over 100 rounds.
Limits are the times of a prototype, at the precision of its table, and 40 ms for quantising a million numbers.

{claims}

{table}

## Memory

Peak of memory (RSS) of a helper's process that has opened a sum of 64 clients, with all modules of `fedloom helper`:

{memory}
"""


def write_page(stored: Mapping[str, Any]) -> str:
    """Return the page as Markdown."""
    rows: list[Row] = stored["rows"]
    memory = [
        [f"{int(size):,}", f"{peak:.0f}", f"{MEMORY_LIMITS[size]:.0f}"] for size, peak in stored["memory_mb"].items()
    ]
    return HEAD.format(
        cores=stored["cores"],
        load=stored["load"],
        remark=f" {stored['remark']}" if "remark" in stored else "",
        claims=bullet_list(map(str, claims(rows, stored["memory_mb"]))),
        table=Table(
            [
                "clients",
                "numbers",
                "lost",
                "quantise, ms",
                "mask and seal, ms",
                "server, s",
                "helper, s",
                "noise, s",
                "bytes",
            ],
            [_cells(row) for row in rows],
        ),
        memory=Table(["numbers", "MB", "limit"], memory),
    )


def claims(rows: list[Row], memory: Mapping[str, float]) -> Iterator[Claim]:
    """Yield the limits of the specification, with the figures."""
    for place, (work, title) in enumerate(WORKS.items()):
        digits = 1 if work.endswith("_ms") else 3
        over = [row for row in rows if round(row[work], digits) > LIMITS[row["clients"], row["numbers"]][place]]
        names = "; ".join(f"{row['clients']:,} clients, {row['numbers']:,} numbers" for row in over)
        yield Claim(f"{title} is within its limit in every row{f' (longer: {names})' * bool(over)}", not over)
    beside = max(row["bytes"] - 4 * row["numbers"] for row in rows)
    yield Claim(
        f"An upload has at most {BYTES_BESIDE:,} bytes beside four a number ({beside:.0f})", beside <= BYTES_BESIDE
    )
    holds = all(peak <= MEMORY_LIMITS[size] for size, peak in memory.items())
    yield Claim(
        f"A helper needs at most {MEMORY_LIMITS['100000']:.0f} MB at 100,000 numbers and 180 MB at 1,000,000", holds
    )


def _cells(row: Row) -> list[str]:
    times = [f"{row[name]:.1f}" for name in ("quantise_ms", "mask_ms")]
    times += [f"{row[name]:.3f}" for name in ("server_s", "helper_s", "noise_s")]
    return [f"{row['clients']:,}", f"{row['numbers']:,}", f"{row['lost']:.0%}", *times, f"{row['bytes']:,.0f}"]
