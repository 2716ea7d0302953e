"""Page of the study of secure sums, from its stored results alone."""

from collections import Counter
from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any

from studies.harness.claim import Claim, bullet_list
from studies.harness.table import Table
from studies.secure.kill_federation import CLIENTS
from studies.secure.kills import ROUNDS
from studies.secure.rounds import CLIENTS as DEPLOYED
from studies.secure.rounds import TARGET

Row = Mapping[str, Any]

LIMITS = {
    (8, 10**4, 0.1): (0.1, 0.3, 0.000, 0.061, 0.06),
    (64, 10**4, 0.3): (0.1, 0.7, 0.000, 0.090, 0.08),
    (1_000, 10**4, 0.1): (0.1, 0.5, 0.001, 0.21, 0.06),
    (1_000, 10**4, 0.3): (0.1, 0.5, 0.001, 0.17, 0.06),
    (8, 10**5, 0.1): (5.5, 1.5, 0.000, 0.219, 0.21),
    (64, 10**5, 0.3): (4.2, 1.8, 0.001, 0.221, 0.20),
    (1_000, 10**5, 0.1): (6.7, 1.0, 0.06, 0.52, 0.20),
    (1_000, 10**5, 0.3): (6.7, 1.0, 0.05, 0.44, 0.20),
    (8, 10**6, 0.1): (40.0, 14.0, 0.01, 1.83, 1.8),
    (64, 10**6, 0.3): (40.0, 18.0, 0.08, 2.37, 2.1),
    (1_000, 10**6, 0.1): (40.0, 19.0, 1.7, 6.8, 2.0),
    (1_000, 10**6, 0.3): (40.0, 19.0, 1.5, 8.0, 2.0),
}
"""Clients, numbers and share of lost clients -> limits of `WORKS`."""

WORKS = {
    "quantise_ms": "Quantising at a client",
    "mask_ms": "Masking and sealing at a client",
    "server_s": "The server's work",
    "helper_s": "A helper's work",
    "noise_s": "Drawing a helper's noise",
}
KINDS = {"server": "the server", "helper": "helpers", "client": "clients"}
"""Kind of process -> name in the text."""

MEMORY_LIMITS = {"100000": 120.0, "1000000": 180.0}
"""Numbers in a vector -> limit of a helper's memory in MB."""

MOST_TIMES = 1.5
"""Limit of the time of a round with helpers, in rounds without."""

MOST_BYTES, MOST_TIME, QUICK = 3, 5, 10**4
"""Limits of an upload with a proof, in bytes and times of one without; time is for so many numbers."""

UNPROVEN = 384
"""Bytes of an upload without a proof beside four a number: the boxes of both helpers."""

PROOFS = {
    "bits": "shared bits, as in Prio3",
    "projections": "256 random projections, as in ACORN",
    "squares": "four squares (in use)",
}
"""Proof -> name in the table."""

HEAD = """# Secure sums: cost, proofs, memory, kills

`python -m studies.secure run` measures all parts, or those that are named; `page` writes this page.

## Cost

Processor time of one sum with noise and two helpers, in one process, with the classes that clients, helpers and the server
use. Messages, disks and networks are left out. In every row the opened sum equals the sum of the clients' integers and both
helpers' noise, number by number; a difference ends the measurement.

The machine had {cores} cores under a load of {load:.1f}.{remark} Times of a client are medians over clients.
The least of five turns counts; at a million numbers there is one turn. The noise is that of ε = 1, δ = 1e-5 over 100 rounds.
Limits are the times of a prototype, at the precision of its table, and 40 ms for quantising a million numbers. The
prototype had no proofs. `prove` is the client's proof of its norm, with masks of 61 bits, and `verify` is the server's check
of it. The helper's time holds its shares in that check.

{claims}

{table}

## Proofs of bounded norms

With noise, an upload proves that its vector has at most the norm of its terms. The check shows server and helpers the
verdict, and nothing else of the vector. Three constructions were compared: bytes of an upload, and milliseconds of a client
with two helpers.

{proofs}

Times are those of masks and proof, without quantising. Those of shared bits and of projections are lower bounds: masks of
the bits alone, and signs and products alone. Projections
bound the norm up to a factor, and a further proof must hide their products. The third way needs four more numbers and 3·√d
coefficients. Masks add up as integers there, so that one equation over the integers is all there is to prove.

- **Soundness.** A longer vector passes with a probability below 2^-146 for each hash that a liar computes, if all helpers
  follow the protocol. A helper and a client that lie together pass.
- **What leaks.** The values that the server sees are uniform. A mask of 61 bits hides a number but for a probability of its
  magnitude times 2^-61. For whole vectors that is at most 2^-44 at 10,000 numbers and 2^-39 at a million.
- **False blame.** A lying helper can have a client left out by false shares, as it can by saying that a box does not open.

## Memory

Peak of memory (RSS) of a helper's process that has opened a sum of 64 clients, with all modules of `fedloom helper`:

{memory}

## Rounds

`fedloom up` with {deployed} clients on the demo's rules by FedAvg, with real processes and TLS. An update has {numbers:,}
numbers. Both kinds of runs take turns. A run counts by its median round:

{round_times}

{round_claims}

## Kills

{kills} kills ({kinds}) struck {runs} runs of {rounds} rounds with {clients} clients and two helpers, in one process. Half of
the runs add noise, and half strike the server alone. The moments are random with fixed seeds: before and after each
message, and before each file that replaces another. A killed process starts again with the files that it had at that
moment, a helper with new keys, and the server resumes its run. Answers of helpers are compared by round, over all starts,
and every upload with the client's ledger.

{outcomes}

The noise is audited with the rest of what a client releases: [Audit](audit.md).
"""


def write_page(stored: Mapping[str, Any]) -> str:
    """Return the page as Markdown."""
    rows: list[Row] = stored["rows"]
    runs: list[Row] = stored["kills"]
    kills: Counter[str] = sum((Counter(one["kills"]) for one in runs), Counter())
    return HEAD.format(
        cores=stored["cores"],
        load=stored["load"],
        remark=stored["remark"],
        claims=bullet_list(map(str, claims(rows, stored["memory_mb"]))),
        table=_table(rows),
        proofs=_proofs(stored["proofs"]),
        memory=_memory(stored["memory_mb"]),
        deployed=DEPLOYED,
        numbers=stored["round_numbers"],
        round_times=Table(["run", "seconds a round"], _round_cells(stored["rounds"])),
        round_claims=bullet_list(map(str, round_claims(stored["rounds"], stored["round_numbers"]))),
        kills=kills.total(),
        kinds=", ".join(f"{kills[kind]} of {title}" for kind, title in KINDS.items()),
        runs=len(runs),
        rounds=ROUNDS,
        clients=CLIENTS,
        outcomes=bullet_list(map(str, kill_claims(runs))),
    )


def claims(rows: list[Row], memory: Mapping[str, float]) -> Iterator[Claim]:
    """Yield the limits of the specification, with the figures."""
    for place, (work, title) in enumerate(WORKS.items()):
        digits = 1 if work.endswith("_ms") else 3
        over = [row for row in rows if round(row[work], digits) > LIMITS[_case(row)][place]]
        names = "; ".join(f"{row['clients']:,} clients, {row['numbers']:,} numbers" for row in over)
        yield Claim(f"{title} is within its limit in every row{f' (longer: {names})' * bool(over)}", not over)
    times = max(row["bytes"] / (4 * row["numbers"] + UNPROVEN) for row in rows)
    yield Claim(
        f"An upload has at most {MOST_BYTES} times the bytes of one without a proof ({times:.2f})", times <= MOST_BYTES
    )
    quick = (row for row in rows if row["numbers"] == QUICK)
    slow = max((1 + row["prove_ms"] / (row["quantise_ms"] + row["mask_ms"]) for row in quick), default=1.0)
    text = f"A client takes at most {MOST_TIME} times as long for it at {QUICK:,} numbers ({slow:.2f})"
    yield Claim(text, slow <= MOST_TIME)
    holds = all(peak <= MEMORY_LIMITS[size] for size, peak in memory.items())
    yield Claim(
        f"A helper needs at most {MEMORY_LIMITS['100000']:.0f} MB at 100,000 numbers and 180 MB at 1,000,000", holds
    )


def round_claims(rounds: Mapping[str, list[float]], numbers: int) -> Iterator[Claim]:
    """Yield the limit of a round with helpers, with the figure and the size of an update."""
    without, with_helpers = (median(times) for times in rounds.values())
    found = f"{with_helpers / without:.2f} times"
    found += f" at {numbers:,} numbers; not measured at {TARGET:,}" if numbers < TARGET else ""
    text = f"A round with helpers takes at most {MOST_TIMES} times the same without ({found})"
    yield Claim(text, with_helpers <= MOST_TIMES * without)


def kill_claims(runs: list[Row]) -> Iterator[Claim]:
    """Yield what kills must not change, with the figures."""
    sums, second, uploads, unpaid, lost = (
        sum(run[name] for run in runs) for name in ("sums", "second_sums", "uploads", "unpaid", "lost")
    )
    starts = sum(run["kills"].get("helper", 0) for run in runs)
    comparable = [run for run in runs if run["is_comparable"]]
    same, whole = (sum(run["has_same_model"] for run in comparable), sum(run["rounds"] == ROUNDS for run in runs))
    yield Claim(f"No second sum was opened: {sums - second} of {sums} have one answer", not second)
    yield Claim(f"A new start of a helper costs at most one round: {lost} of {starts}", lost <= starts)
    yield Claim(
        f"No entry of a ledger was lost: {uploads - unpaid} of {uploads} uploads with noise are paid", not unpaid
    )
    yield Claim(f"Every run reached its last round: {whole} of {len(runs)}", whole == len(runs))
    yield Claim(
        f"Where the server alone was killed, the model is that of a run without kills, bit by bit: {same} of {len(comparable)}",
        same == len(comparable),
    )


def _case(row: Row) -> tuple[int, int, float]:
    return row["clients"], row["numbers"], row["lost"]


def _table(rows: list[Row]) -> Table:
    header = "clients, numbers, lost, quantise (ms), mask and seal (ms), prove (ms), verify (ms)"
    header += ", server (s), helper (s), noise (s), bytes"
    return Table(header.split(", "), [_cells(row) for row in rows])


def _proofs(rows: list[Row]) -> Table:
    header = ["proof", *(f"{row['numbers']:,} numbers: {unit}" for row in rows for unit in ("bytes", "ms"))]
    names = {"plain": "none", **PROOFS}
    cells = [[title, *(text for row in rows for text in _cost(row, name))] for name, title in names.items()]
    return Table(header, cells)


def _cost(row: Row, proof: str) -> tuple[str, str]:
    return f"{row[f'{proof}_bytes']:,.0f}", f"{row[f'{proof}_ms']:.1f}"


def _round_cells(rounds: Mapping[str, list[float]]) -> list[list[str]]:
    return [[name, ", ".join(f"{one:.2f}" for one in times)] for name, times in rounds.items()]


def _memory(peaks: Mapping[str, float]) -> Table:
    rows = [[f"{int(size):,}", f"{peak:.0f}", f"{MEMORY_LIMITS[size]:.0f}"] for size, peak in peaks.items()]
    return Table(["numbers", "MB", "limit"], rows)


def _cells(row: Row) -> list[str]:
    times = [f"{row[name]:.1f}" for name in ("quantise_ms", "mask_ms", "prove_ms", "verify_ms")]
    times += [f"{row[name]:.3f}" for name in ("server_s", "helper_s", "noise_s")]
    return [f"{row['clients']:,}", f"{row['numbers']:,}", f"{row['lost']:.0%}", *times, f"{row['bytes']:,.0f}"]
