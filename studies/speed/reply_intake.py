"""Time and memory of a server that takes the replies of a round as they arrive.

`python -m studies speed reply_intake` encodes replies of 32,000 numbers one by one, lets FedAvg take them, and makes its
step. The processor time of taking and of the step is compared with one pass over the same numbers; the time to make replies
is left out. Memory is the growth of the process in its peak, for a tenth of the replies and for all. `--check` exits 1
above 400 MB.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from flwr.app import Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity
from rich.console import Console
from rich.table import Table

from common.arrays import Arrays
from common.config.parse import parse
from common.wire.codec import decode, encode
from common.wire.messages import TRAIN, EnrolRequest, TrainReply
from server.clients.enrolment import Enrolment
from server.clients.roster import EnrolledClient
from server.compose import build_round
from server.round.method import RoundContext
from server.round.round import Round
from server.round.state import RunState
from studies.speed import timing

NUMBERS, LIMIT_MB = 32_000, 400
STEPS = ("one pass", "decode", "take", "step")


def server(clients: int, folder: Path) -> Round:
    """Return FedAvg with so many enrolled clients."""
    enrolment = Enrolment(EnrolRequest("benchmark", "{}", "{}"), 0.0, lambda messages, seconds: [])
    for node in range(clients):
        enrolment.roster.enrol(EnrolledClient(f"client-{node:06}", node, "", 100))
    config = parse({"task": "rules", "method": "fedavg"})
    model: Arrays = {"encoder.w": np.zeros(NUMBERS, np.float32)}
    return build_round(config, RunState(0, model), enrolment, folder=folder)


def memory_mb(entry: str) -> float:
    """Return `VmRSS`, the process's memory, or `VmHWM`, its peak."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[entry].split()[0]) * 1024 / 1e6


def measure(clients: int) -> dict[str, float]:
    """Return milliseconds of processor time a reply by step, and the growth of memory in MB."""
    spent, rng = dict.fromkeys(STEPS, 0.0), np.random.default_rng(0)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        strategy, messages = server(clients, Path(folder)), list[Message]()
        strategy.intake.open(RoundContext(strategy.config, strategy.state), [])
        before = memory_mb("VmRSS")
        TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, 1, 1
        for node in range(clients):
            update = {"encoder.w": rng.standard_normal(NUMBERS, np.float32)}
            message = Message(
                encode(TrainReply(1, update, {}, 0.5, 10, 1)), reply_to=Message(RecordDict(), node, TRAIN)
            )
            marks = [time.process_time()]
            update["encoder.w"].sum(dtype=np.float64)
            marks.append(time.process_time())
            decode(TrainReply, message.content)
            marks.append(time.process_time())
            strategy.intake.take(node, message)
            marks.append(time.process_time())
            for name, start, end in zip(STEPS, marks, marks[1:], strict=False):
                spent[name] += end - start
            messages.append(message)
        start = time.process_time()
        strategy.aggregate_train(1, messages)
        spent["step"] = time.process_time() - start
    return {
        **{name: 1e3 * seconds / clients for name, seconds in spent.items()},
        "peak_mb": memory_mb("VmHWM") - before,
    }


def main() -> None:
    """Measure, print, write."""
    parser: argparse.ArgumentParser = timing.options(__doc__, "reply_intake")
    parser.add_argument("--clients", type=int, default=10_000)
    parser.add_argument("--check", action="store_true", help=f"exit with 1 above {LIMIT_MB} MB")
    options = parser.parse_args()
    found = {count: measure(count) for count in (max(1, options.clients // 10), options.clients)}
    table = Table("replies", *(f"{name}, ms" for name in STEPS), "peak MB", title=f"{NUMBERS:,} float32 a reply")
    for count, row in found.items():
        table.add_row(f"{count:,}", *(f"{row[name]:.3f}" for name in STEPS), f"{row['peak_mb']:.0f}")
    Console().print(table)
    timing.write(options.out, {"numbers": NUMBERS, "limit_mb": LIMIT_MB, "replies": found}, "numpy")
    if options.check and found[options.clients]["peak_mb"] > LIMIT_MB:
        sys.exit(1)


if __name__ == "__main__":
    main()
