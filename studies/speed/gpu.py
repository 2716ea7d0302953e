"""Local training on the processor and on a GPU, in turns, and the difference of the updates.

`python -m studies speed gpu` trains 2,000 demo homes by FedRule, generated sessions of 20,000 items by SR-GNN, and 20 demo
sensors by the paper's transformer. A turn is one round of all clients, from requests to replies in main memory. A GPU is asked
with cohorts of several sizes. Each case ends after its share of `--seconds`. Without a GPU nothing is measured or written;
else the section of the page is written too.
"""

import argparse
import re
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from client.data.dataset import AnyDataset
from client.data.read import partition, read_all
from client.device import describe_device
from client.state import MemoryStore
from client.tasks.registry import CLIENT_TASKS, build_learner
from client.training.local_round import train
from client.training.participant import TOGETHER, Participant, split_cohort
from common.arrays import Arrays, norm
from common.config.parse import parse
from common.config.run import RunConfig
from common.models import build_model, parameters
from common.options import Scalar
from common.tasks.registry import TASKS
from common.wire.messages import TrainReply, TrainRequest
from studies.harness.session_lines import write_lines
from studies.speed import timing

PAGE, TITLE = "speed.md", "## GPU"

CASES: dict[str, dict[str, Scalar]] = {
    "rules, FedRule": {"task": "rules", "method": "fedrule"},
    "sessions, SR-GNN": {
        "task": "sessions",
        "method": "fedavg",
        "model": "paper",
        "tasks.sessions.network": "srgnn",
    },
    "traffic, transformer": {
        "task": "traffic",
        "method": "fedavg",
        "model": "paper",
        "tasks.traffic.network": "transformer",
    },
}
DATA: dict[str, str] = {"rules": "demo:0-2000", "traffic": "demo:0-20"}
LINES = 2_000
SIZES = (TOGETHER, 256, 2_000)
"""Clients of a cohort on the GPU."""


def prepare(options: dict[str, Scalar], folder: Path) -> tuple[RunConfig, list[Participant]]:
    """Return the configuration of a case and its clients before their first round."""
    config = parse(options)
    data = DATA.get(config.task) or str(write_lines(folder / "sessions.txt", LINES))
    parts: Sequence[AnyDataset] = partition(read_all(config.task, data), 0, unit=CLIENT_TASKS[config.task].unit)
    spec, steps = TASKS[config.task], config.method_options.local_steps
    model = parameters(build_model(spec, config.task_run(spec, parts[0].vocabulary)))
    request = TrainRequest(1, "speed:0", model)
    learners = sorted((build_learner(config, part) for part in parts), key=lambda one: one.size)
    about = [(f"client-{k}", "speed", 0, one) for k, one in enumerate(learners) if one.examples]
    return config, [Participant(*each, MemoryStore(), request, steps) for each in about]


def train_all(config: RunConfig, clients: Sequence[Participant], device: str, together: int) -> list[Arrays]:
    """Return the updates of one round."""
    updates = []
    for cohort in split_cohort(clients, lambda one: one.learner, together):
        members = [replace(one, device=device, store=MemoryStore()) for one in cohort]
        updates += [reply.update for reply in train(config.method_options, members) if isinstance(reply, TrainReply)]
    return updates


def measure(name: str, seconds: float) -> dict[str, Any]:
    """Return median seconds of a round on both devices, and the largest difference of an update."""
    with tempfile.TemporaryDirectory() as folder:
        config, clients = prepare(CASES[name], Path(folder))
    ways: dict[str, Callable[[], list[Arrays]]] = {"cpu": partial(train_all, config, clients, "cpu", TOGETHER)}
    sizes = sorted({min(size, len(clients)) for size in SIZES})
    ways |= {f"cuda, {size}": partial(train_all, config, clients, "cuda", size) for size in sizes}
    first = {way: work() for way, work in ways.items()}  # warms up
    end, turns = time.monotonic() + seconds, list[timing.Times]()
    while not turns or (len(turns) < 9 and time.monotonic() < end):
        turns.append(timing.time_in_turns(ways, 1, warm_up=False))
    times = {way: [turn[way][0] for turn in turns] for way in ways}
    differs = max(map(_difference, *(first[way] for way in ("cpu", f"cuda, {sizes[0]}"))))
    gains = {way: timing.median_ratio(times["cpu"], times[way]) for way in ways}
    found = {"case": name, "clients": len(clients), "turns": len(turns), "relative_difference": differs, "gain": gains}
    return {**found, "median_s": {way: float(np.median(each)) for way, each in times.items()}}


def _difference(one: Arrays, other: Arrays) -> float:
    return norm({n: a - other[n] for n, a in one.items()}) / max(norm(one), 1e-12)


def section(device: str, rows: Sequence[dict[str, Any]]) -> str:
    """Return the section of the page."""
    lines = [f"{TITLE}\n", f"{device} against one core, [gpu.json](gpu.json); gain as times the processor's speed.\n"]
    lines += ["| case | clients | s a round, cpu | on the GPU, by cohort: s, gain | relative difference |"]
    lines += ["|---|---|---|---|---|"]
    for row in rows:
        gpu = [
            f"{way[6:]}: {row['median_s'][way]:.3g}, {gain:.2g}" for way, gain in row["gain"].items() if way != "cpu"
        ]
        figures = f"{row['median_s']['cpu']:.3g} | {'; '.join(gpu)} | {row['relative_difference']:.1e}"
        lines.append(f"| {row['case']} | {row['clients']:,} | {figures} |")
    return "\n".join(lines) + "\n\n"


def write_section(page: Path, text: str) -> None:
    """Replace the section of the page, or write it before the further timings."""
    found = re.sub(rf"{TITLE}\n.*?(?=^## )", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    page.write_text(found.replace("## Further timings\n", f"{text}## Further timings\n"), "utf-8")


def main() -> None:
    """Measure, print, write; or say that there is no GPU."""
    parser = timing.options(__doc__, "gpu")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--seconds", type=float, default=300.0, help="time of all turns")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print(f"no GPU for this PyTorch {torch.__version__}: nothing measured, nothing written")
        return
    timing.use_few_threads()
    rows = [measure(name, options.seconds / len(CASES)) for name in CASES]
    text = section(describe_device("cuda"), rows)
    print(text)
    timing.write(options.out, {"device": describe_device("cuda"), "rows": rows}, "torch", "numpy")
    write_section(options.out.parent / PAGE, text)
