"""Page of the faults benchmark, from its stored results alone."""

import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.faults.kinds import PAUSE_SECONDS, RESTART_SECONDS

GOAL_MEDIAN_SECONDS, GOAL_P95_SECONDS = 3.0, 8.0

Outcome = dict[str, Any]

REAL_TIME = "The processes of the runs had real-time priority, since the machine did other work too."

HEAD = """# Faults

{kills} kills and {pauses} pauses of {pause:.0f} s: each struck one run of `fedloom up` with three clients ({tasks}).
The moments are random with a fixed seed. `python -m benchmarks.faults run` measures, `page` writes this page.

{totals}

## Stalls

A stall is the time without a round line, less the usual time of a round and the time of the fault itself. That is a
pause, or the {restart:.0f} s until a service manager starts a killed command again. The others train on while a killed
client is started again.

{stalls}

The machine had {cores} cores under a load of {load:.1f}. The goal of {median:.0f} s (median) and {p95:.0f} s (95th
percentile) is {met}. {priority}

SuperLink, ServerApp and clients are copies of a process that has imported PyTorch and Flower. A command that was killed
imports them anew.

## Not covered

- Machines that fail for longer than a minute, and disks that fill up.
- Ledgers of more than one run: only `ratings` runs with noise here.
- Networks. `tests/system/test_cut_networks.py` cuts one that delays all bytes and loses a hundredth of all packets.
"""


def write_page(stored: dict[str, Any]) -> str:
    """Return the page as Markdown."""
    runs: list[Outcome] = stored["runs"]
    pauses = sum(run["fault"] == "pause" for run in runs)
    return HEAD.format(
        kills=len(runs) - pauses,
        pauses=pauses,
        pause=PAUSE_SECONDS,
        tasks=", ".join(dict.fromkeys(run["task"] for run in runs)),
        restart=RESTART_SECONDS,
        totals=_totals(runs),
        stalls=_stalls(runs),
        cores=stored["cores"],
        load=stored["load"],
        priority=REAL_TIME if stored["real_time"] else "",
        median=GOAL_MEDIAN_SECONDS,
        p95=GOAL_P95_SECONDS,
        met="met" if _is_goal_met(runs) else "not met",
    )


def _totals(runs: Sequence[Outcome]) -> str:
    by_server = [run for run in runs if run["comparable"]]
    rows = [
        "| what | result |",
        "|---|---|",
        f"| runs finished | {sum(run['status'] == 'completed' for run in runs)} of {len(runs)} |",
        f"| round lines lost | {sum(run['lines_lost'] for run in runs)} of {sum(run['rounds'] for run in runs)} |",
        f"| round lines written twice | {sum(run['lines_twice'] for run in runs)} |",
        f"| processes left | {sum(run['processes_left'] for run in runs)} |",
        f"| models equal to the unbroken run, without noise and kills of clients alone |"
        f" {sum(run['same_model'] for run in by_server)} of {len(by_server)} |",
    ]
    if releases := sum(run["releases"] for run in runs):
        missing = sum(run["unrecorded"] for run in runs)
        rows.append(f"| noised replies missing in a client's ledger | {missing} of {releases} |")
    return "\n".join(rows)


def _stalls(runs: Sequence[Outcome]) -> str:
    kinds = sorted({run["fault"] for run in runs})
    rows = [(kind, [run["stall"] for run in runs if run["fault"] == kind]) for kind in kinds]
    rows += [("all", [run["stall"] for run in runs])]
    lines = [
        f"| {kind} | {len(seconds)} | {statistics.median(seconds):.1f} | {np.percentile(seconds, 95):.1f} |"
        for kind, seconds in rows
    ]
    return "\n".join(["| fault | number | median, s | 95th percentile, s |", "|---|---|---|---|", *lines])


def _is_goal_met(runs: Sequence[Outcome]) -> bool:
    seconds = [run["stall"] for run in runs]
    return statistics.median(seconds) <= GOAL_MEDIAN_SECONDS and float(np.percentile(seconds, 95)) <= GOAL_P95_SECONDS
