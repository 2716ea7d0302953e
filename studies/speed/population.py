"""Whole populations in one process: processor time of an update, and memory of a client.

`python -m studies speed population --clients 500 2000` runs FedRule on demo homes, one client each, in a process of its
own for each number of clients. An update is one train request with its reply and its share of the server's step. Its
processor time, that of all `--workers`, depends little on other work of the machine. The last column is what the 76,218
homes of FedRule's paper would take at the largest number's cost. With `--check`, a missed limit is exit status 1.

`--task sessions --method fedga --clients 1000 --lines 20000` reads so many generated sessions, one a line without a user, and
makes clients of 20 of them. The limit is on the memory of the process, and on what rounds after the third add to it.

`--state none` trains by FedAvg and SGD, whose clients have no state. The limit is on what rounds after the first, which
prepares data, leave in memory for each further client. `--against today flower` measures others beside, in turns: the path of
cohorts of 32 with single replies, and Flower's Ray simulation on two cores with clients that do nothing. `--parts` profiles
the run, start included, and writes the time of each part of the code for an update.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from client.data.read import partition, read_all
from client.tasks.registry import CLIENT_TASKS
from common.config.parse import parse
from common.config.run import RunConfig
from deploy.simulation import blocks as population
from deploy.simulation.clients import open_sessions
from server.record.events import RoundEvent
from server.record.folder import RunDirectory
from server.run import run
from studies.harness.measured_grid import MeasuredGrid
from studies.harness.other_simulations import OTHERS, compare
from studies.harness.peak_memory import PeakMemory
from studies.harness.profiled_parts import ProfiledParts
from studies.harness.session_lines import write_lines
from studies.harness.snapshot_cost import measure_snapshot
from studies.speed import timing

HOMES, TRAINED = 76_218, 73_700
"""Homes of the paper, and those of them with a rule to train on."""

LIMITS = {"seconds_of_all": 30.0, "gb_of_all": 12.0, "growth": 1.15}
"""Largest time of a round and memory of all homes, and cost at most clients over that at fewest."""

LINE_LIMITS = {"peak_mb": 1536.0, "growth_after_3": 1.02}
"""The same of generated sessions: memory in all, and that at the end over that after three rounds."""

STATELESS_LIMIT = 2.0
"""Kilobytes in memory after all rounds for each further client without state, beside its data."""


def measure(clients: int, options: argparse.Namespace) -> dict[str, float | str]:
    """Return the figures of one run in this process."""
    if options.replies != "auto":
        population.FOLDED_BYTES = 0 if options.replies == "summed" else 10**15
    memory = PeakMemory()
    memory.start()
    with tempfile.TemporaryDirectory() as folder:
        lines = options.lines and write_lines(Path(folder) / "sessions.txt", options.lines)
        data = read_all(options.task, str(lines or f"demo:0-{clients}"))
        catalogue = Path(folder) / "catalogue.json"
        catalogue.write_text(data.vocabulary.to_json(), "utf-8")
        config = _configure(options, catalogue if lines else None)
        parts = partition(data, 0, unit=CLIENT_TASKS[options.task].unit)
        sessions, stores = open_sessions(parts)
        with (
            MeasuredGrid(sessions, options.together, workers=options.workers) as grid,
            ProfiledParts(is_on=options.parts) as profile,
        ):
            result = run(grid, config, Path(folder))
        events = RunDirectory(Path(folder), config.run_id).events()
        rounds = [event for event in events if isinstance(event, RoundEvent)]
    memory.stop()
    costs = grid.costs()
    per_client = (memory.peak - memory.first) / len(parts)
    return {
        "clients": len(parts),
        "trained": grid.trained()[0].messages,
        "workers": options.workers,
        "replies": options.replies,
        **({"task": options.task, "lines": options.lines} if options.lines else {}),
        **costs,
        "mb_per_client": per_client,
        "peak_mb": memory.peak,
        **grid.memory(),
        "losses": [event.loss for event in rounds],
        "measured": {event.round: event.metrics for event in rounds if event.metrics},
        "seconds_of_all": costs["ms_cpu_per_update"] * TRAINED / 1000,
        "gb_of_all": per_client * HOMES / 1024,
        "model_sha256": result.model_sha256,
        "parts": profile.milliseconds(sum(event.answered for event in rounds)),
        **measure_snapshot(stores, config.run_id),
    }


def measure_flower(clients: int, options: argparse.Namespace) -> dict[str, float | str]:
    """Return the figures of Flower's Ray simulation with clients that return their message."""
    from studies.speed.simulation import rays_nothing

    memory = PeakMemory()
    memory.start()
    milliseconds = rays_nothing(clients, options.rounds - 1)
    memory.stop()
    return {"clients": clients, "seconds_per_round": milliseconds * clients / 1000, "peak_mb": memory.peak}


def _configure(options: argparse.Namespace, catalogue: Path | None) -> RunConfig:
    """Return the configuration of the run; None stands for the catalogue of demo data."""
    given = {"run-id": "population", "rounds": options.rounds, "task": options.task, "method": options.method}
    given |= {"evaluate-every": options.evaluate_every, "federation.cohort": options.cohort}
    given |= {"catalogue": str(catalogue)} if catalogue else {}
    given |= {"method": "fedavg", "training.optimizer": "sgd"} if options.state == "none" else {}
    return parse({**given, "federation.deadline": 3600.0, "privacy.unit": "none"})


def main() -> None:
    """Measure each number of clients in a process of its own; print, write, check."""
    options = _read_options()
    if options.inner:
        torch.set_num_threads(1)
        measured = measure_flower if options.path == "flower" else measure
        print(json.dumps(measured(options.clients[0], options)))
        return
    rows = [*map(_measure_apart, options.clients)]
    head = "clients | ms an update | s a round | ms an enrolment | ms an evaluation | MB a client | s a snapshot"
    print(f"| {head} | 76,218 homes |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        figures = [row["ms_cpu_per_update"], row["seconds_per_round"]]
        figures += [row[f"ms_cpu_per_{part}"] for part in ("enrolment", "evaluation")]
        text = " | ".join(f"{figure:.2f}" for figure in (*figures, row["mb_per_client"], row["seconds_snapshot"]))
        print(f"| {row['clients']:,} | {text} | {row['seconds_of_all']:.0f} s, {row['gb_of_all']:.1f} GB |")
        print(
            f"At most {row['peak_mb']:,.0f} MB, {row['growth_after_3']:.3f} of that after three rounds", file=sys.stderr
        )
    growth, load = rows[-1]["ms_cpu_per_update"] / rows[0]["ms_cpu_per_update"], os.getloadavg()[0]
    found = {"rows": rows, "growth": growth, "load": load, "command": sys.argv[1:]}
    found |= {"against": compare(options, _measure_apart)} if options.against else {}
    timing.write(options.out, found, "torch", "flwr", under=options.under)
    reached, limits = {**rows[-1], "growth": growth}, LINE_LIMITS if options.lines else LIMITS
    if options.state == "none":
        more = [rows[-1][kind] - rows[0][kind] for kind in ("mb_left_by_rounds", "clients")]
        reached["kb_left_a_client"], limits = 1024 * more[0] / more[1], {"kb_left_a_client": STATELESS_LIMIT}
        print(f"Rounds leave {reached['kb_left_a_client']:.1f} kB in memory for each further client")
    missed = [name for name, limit in limits.items() if reached[name] > limit]
    for name in missed:
        print(f"{name} is {reached[name]:.4g}, at most {limits[name]:g}", file=sys.stderr)
    if options.check and missed:
        sys.exit(1)


def _read_options() -> argparse.Namespace:
    parser = timing.options(__doc__, "population")
    parser.add_argument("--clients", type=int, nargs="+", default=[500, 2000], help="numbers of homes, ascending")
    parser.add_argument("--rounds", type=int, default=5, help="rounds, of which the first is not timed")
    parser.add_argument("--evaluate-every", type=int, default=10**6, help="rounds from one evaluation to the next")
    parser.add_argument("--together", type=int, default=0, help="clients that train stacked; 0 chooses")
    parser.add_argument("--workers", type=int, default=1, help="processes that train")
    parser.add_argument("--task", default="rules", help="task whose demo data are read")
    parser.add_argument("--lines", type=int, default=0, help="generated sessions without users in place of demo data")
    parser.add_argument("--cohort", type=float, default=1.0, help="share of the clients in a round")
    parser.add_argument("--method", default="fedrule", help="method of the run")
    parser.add_argument("--replies", choices=["auto", "summed", "single"], default="summed", help="form of the replies")
    parser.add_argument(
        "--state", choices=["method", "none"], default="method", help="clients' state: the method's, or none"
    )
    parser.add_argument(
        "--against", choices=OTHERS, nargs="+", default=[], help="paths that are measured beside, in turns"
    )
    parser.add_argument("--path", choices=["own", "flower"], default="own", help="simulation that --inner measures")
    parser.add_argument("--turns", type=int, default=1, help="turns of a comparison")
    parser.add_argument("--under", default="", metavar="KEY", help="key of the file to write under; the rest stays")
    parser.add_argument("--check", action="store_true", help="fail if a limit is missed")
    parser.add_argument("--parts", action="store_true", help="profile the run; its times are then larger")
    parser.add_argument("--inner", action="store_true", help="measure in this process; print JSON")
    return parser.parse_args()


def _measure_apart(clients: int, *more: str) -> dict[str, Any]:
    own = [*sys.argv[1:], "--inner", "--clients", str(clients), *more]
    command = [sys.executable, "-m", "studies", "speed", "population", *own]
    done = subprocess.run(
        command, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=True, stdout=subprocess.PIPE, text=True
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))
