"""Parts of fedloom as multiples of the least work for the same numbers, and of a peer, in one run.

`python -m studies speed floors` takes turns of three ways in one process: fedloom's, a floor and a peer. A floor does the
bare arithmetic by hand, on data that are ready. A figure is processor time, the least over the turns, which other work of
the machine affects little. Writes JSON, and the table that leads the page.
"""

import json
import os
import re
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from flwr.app import Message
from safetensors.numpy import save
from scipy.sparse import hstack
from torch import Tensor
from torch.func import grad_and_value, vmap

from client.data.dataset import own_rng
from client.data.read import partition, read_all
from client.enrolment import fingerprint
from client.tasks.learner import AnswersTogether
from client.tasks.markets.data import features
from client.tasks.registry import CLIENT_TASKS, build_learner
from client.training.alone import measure_alone
from client.training.foresight import Question, foreseen
from client.training.stacks import Tensors, stack
from client.training.steps import plain_gradient
from common.arrays import Arrays
from common.config.parse import configure_alone, parse, to_json
from common.errors import RunError
from common.models import parameters, parameters_of, tensors
from common.tasks.markets.vocabulary import demo_market_catalogue
from common.tasks.rules.options import RulesOptions
from common.wire.codec import encode
from common.wire.messages import (
    ENROL,
    EVALUATE,
    TRAIN,
    EnrolRequest,
    EvaluateRequest,
    Payload,
    TrainReply,
    TrainRequest,
)
from deploy.simulation import blocks
from deploy.simulation.clients import open_sessions
from deploy.simulation.grid import InProcessGrid, simulate_clients
from studies.harness.command import time_start
from studies.speed import timing

PAGE, TITLE = "speed.md", "## Times the floor"

HOMES, TOGETHER, STEPS, NUMBERS, WIDTH = 500, 125, 3, 1_000_000, 768

OURS, FLOOR, PEER = "fedloom", "floor", "peer"

Ways = Mapping[str, Callable[[], object]]


def gradients(homes: int = HOMES) -> tuple[Ways, int]:
    """Return the ways to the gradients of homes for the local steps of a round, and their number of homes."""
    config = parse({"task": "rules", "method": "fedrule"})
    parts = partition(read_all("rules", f"demo:0-{homes}"), 0, unit=CLIENT_TASKS["rules"].unit)
    found = (build_learner(config, part) for part in parts)
    learners = sorted((one for one in found if one.examples), key=lambda one: one.size)
    model, generator = parameters(learners[0].module), torch.Generator().manual_seed(0)
    stacks = []
    for some in (learners[k : k + TOGETHER] for k in range(0, len(learners), TOGETHER)):
        batch = stack([one.batch(TrainRequest(1, "", model)) for one in some])
        masks = stack([one.step_inputs(STEPS, generator) for one in some])["keep"]
        stacks.append((stack([tensors(model)] * len(some)), batch, masks, by_hand(batch, model)))
    loss = learners[0].loss

    def ours() -> None:
        for params, batch, masks, _ in stacks:
            plain = plain_gradient(learners[0])
            for t in range(STEPS):
                plain(params, batch, {"keep": masks[:, t]})

    def floor() -> None:
        for params, _, masks, losses in stacks:
            for t in range(STEPS):
                leaves = {name: p.detach().requires_grad_() for name, p in params.items()}
                torch.autograd.grad(losses(leaves, masks[:, t]).sum(), [*leaves.values()])

    def peer() -> None:
        for params, batch, masks, _ in stacks:
            for t in range(STEPS):
                vmap(grad_and_value(loss))(params, batch, {"keep": masks[:, t]})

    return {OURS: ours, FLOOR: floor, PEER: peer}, len(learners)


def by_hand(batch: Tensors, model: Arrays) -> Callable[[Tensors, Tensor], Tensor]:
    """Return the losses of clients with one home each by batched products; constants are computed before."""
    x, adj, edges = (batch[name][:, 0] for name in ("x", "adj", "edges"))
    mean, relations = adj / adj.sum(-1, keepdim=True).clamp(min=1), len(model["predictor.trigger.weight"])
    neighbours, labels, weights = torch.bmm(mean, x), batch["labels"][:, 0], batch["weights"][:, 0]
    trigger, action = (edges[..., side] * relations + edges[..., 2] for side in (0, 1))

    def losses(p: Tensors, keep: Tensor) -> Tensor:
        first = torch.baddbmm(
            p["encoder.first.lin_root.bias"][:, None], neighbours, p["encoder.first.lin_rel.weight"].mT
        )
        hidden = torch.relu((first + torch.bmm(x, p["encoder.first.lin_root.weight"].mT)) * keep[:, 0])
        second = torch.bmm(torch.bmm(mean, hidden), p["encoder.second.lin_rel.weight"].mT)
        root = p["encoder.second.lin_root.weight"].mT
        z = second + torch.baddbmm(p["encoder.second.lin_root.bias"][:, None], hidden, root)
        starts = torch.baddbmm(p["predictor.trigger.bias"][:, None], z, p["predictor.trigger.weight"].mT)
        starts = starts + torch.bmm(x, p["predictor.trigger_type.weight"].mT)
        acts = torch.bmm(z, p["predictor.action.weight"].mT) + torch.bmm(x, p["predictor.action_type.weight"].mT)
        logits = starts.flatten(1).gather(1, trigger) + acts.flatten(1).gather(1, action)
        each = torch.nn.functional.binary_cross_entropy_with_logits(logits, labels, reduction="none")
        return (weights * each).sum(1)

    return losses


def answers(homes: int = HOMES) -> tuple[Ways, int]:
    """Return the ways to a network's logits of all rules of homes, and the number of homes."""
    config = parse({"task": "rules", "method": "fedrule"})
    parts = partition(read_all("rules", f"demo:0-{homes}"), 0, unit=CLIENT_TASKS["rules"].unit)
    built = (build_learner(config, part) for part in parts)
    asked = [one for one in built if isinstance(one, AnswersTogether) and one.questions("test", {})]
    asked.sort(key=lambda one: one.size)
    model = parameters(asked[0].module)
    questions = [Question(one, "test", [model], {}) for one in asked]
    together = stack([one.questions("test", {}) for one in asked])
    rows, params = {name: t.flatten(0, 1) for name, t in together.items()}, tensors(model)

    def ours() -> None:
        with foreseen(questions):
            pass

    def floor() -> None:
        with torch.no_grad():
            asked[0].answer(params, rows)

    def peer() -> None:
        with torch.no_grad():
            for one in asked:
                one.answer(params, one.questions("test", {}))

    return {OURS: ours, FLOOR: floor, PEER: peer}, len(asked)


class Federation:
    """Demo homes as clients in this process, for single exchanges of a FedRule run."""

    def __init__(self, homes: int) -> None:
        data = read_all("rules", f"demo:0-{homes}")
        self.parts = partition(data, 0, unit=CLIENT_TASKS["rules"].unit)
        self.config = parse({"run-id": "floors", "task": "rules", "method": "fedrule", "privacy.unit": "none"})
        self.invitation = EnrolRequest("floors", to_json(self.config), data.vocabulary.to_json())
        self.model = parameters_of(self.config, data.vocabulary)
        self.enrol()

    def send(self, kind: str, request: Payload) -> None:
        """Let all clients answer a request."""
        content = encode(request)
        replies = self.grid.send_and_receive([Message(content, node, kind) for node in self.grid.get_node_ids()])
        if failed := [reply.error.reason for reply in replies if reply.has_error()]:
            raise RunError(f"clients failed: {failed[0]}")

    def enrol(self) -> None:
        """Enrol all clients, whose data are split anew."""
        self.round, self.grid = 0, InProcessGrid(open_sessions(self.parts)[0], 0)
        self.grid.__enter__()  # the garbage collector works as in a simulation from now on
        self.send(ENROL, self.invitation)

    def train(self, folded_bytes: int) -> None:
        """Train the next round; above so many bytes replies are summed."""
        before, blocks.FOLDED_BYTES = blocks.FOLDED_BYTES, folded_bytes
        self.round += 1
        self.send(TRAIN, TrainRequest(self.round, fingerprint(self.invitation), self.model, {}, self.round - 1))
        blocks.FOLDED_BYTES = before


def updates(homes: int = HOMES) -> tuple[Ways, int]:
    """Return the ways to a round of FedRule updates, and their number."""
    bare, count = gradients(homes)
    summed, single = Federation(homes), Federation(homes)
    return {OURS: lambda: summed.train(0), FLOOR: bare[FLOOR], PEER: lambda: single.train(10**15)}, count


def enrolments(homes: int = HOMES) -> tuple[Ways, int]:
    """Return the ways to enrol homes, and their number."""
    federation = Federation(homes)
    pools, relations = RulesOptions().negatives, len(federation.parts[0].vocabulary.relations)
    homes_of = [(home.name, len(home.devices), len(home.rules)) for part in federation.parts for home in part.units]

    def floor() -> None:
        for name, devices, rules in homes_of:
            rng, pairs = own_rng(0, name), devices * (devices - 1)
            rng.permutation(rules)
            for _ in range(pools):
                rng.permutation(rng.integers(relations, size=pairs))

    def peer() -> None:
        for part in federation.parts:
            build_learner(federation.config, part)

    return {OURS: federation.enrol, FLOOR: floor, PEER: peer}, len(federation.parts)


def evaluations(homes: int = HOMES) -> tuple[Ways, int]:
    """Return the ways to evaluate a model at homes, and their number."""
    bare, _ = answers(homes)
    federation = Federation(homes)
    request = EvaluateRequest(0, fingerprint(federation.invitation), federation.model, "test")

    def ours() -> None:
        federation.send(EVALUATE, request)

    def peer() -> None:
        federation.send(EVALUATE, replace(request, final=True))

    return {OURS: ours, FLOOR: bare[FLOOR], PEER: peer}, len(federation.parts)


def alone(homes: int = HOMES // 5, rounds: int = 10) -> tuple[Ways, int]:
    """Return the ways to train homes alone for the steps of a run, and their number."""
    parts = partition(read_all("rules", f"demo:0-{homes}"), 0, unit=CLIENT_TASKS["rules"].unit)
    about: dict[str, Any] = {
        "run-id": "floors",
        "task": "rules",
        "method": "fedrule",
        "rounds": rounds,
        "evaluate-every": rounds,
    }
    config = parse({**about, "privacy.unit": "none"})
    asked = configure_alone(config, rounds)

    def ours() -> None:
        learners = {str(k): build_learner(asked, part) for k, part in enumerate(parts)}
        measure_alone(asked, parts[0].vocabulary, learners, "test")

    def run_all() -> None:
        with TemporaryDirectory() as folder:
            simulate_clients(config, parts, Path(folder))

    def peer() -> None:
        for k, part in enumerate(parts):
            measure_alone(asked, part.vocabulary, {str(k): build_learner(asked, part)}, "test")

    return {OURS: ours, FLOOR: run_all, PEER: peer}, len(parts)


def commands(*words: str) -> tuple[Ways, int]:
    """Return the ways to run a command on a finished run of demo homes, in processes of their own."""
    home = TemporaryDirectory()
    variables = {"FEDLOOM_RUNS": str(Path(home.name) / "runs"), "OMP_NUM_THREADS": "1"}

    def start(*of_command: str) -> None:
        (Path(home.name) / "model.onnx").unlink(missing_ok=True)
        if time_start(of_command, Path(home.name), variables).code:
            raise RunError(f"fedloom {' '.join(of_command)} has failed")

    def imports(name: str) -> None:
        subprocess.run([sys.executable, "-c", f"import {name}"], check=True)

    about = "--task rules --method fedrule --rounds 2 --run-id floors --clients 4 --data demo:0-40"
    start("simulate", *about.split())
    weakref.finalize(start, home.cleanup)
    ways = {OURS: lambda: start(*words), FLOOR: lambda: imports("numpy"), PEER: lambda: imports("torch")}
    return ways, 1000  # seconds of one command


def texts() -> tuple[Ways, int]:
    """Return the ways to the vectors of the demo catalogue's texts, and the number of texts."""
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.random_projection import SparseRandomProjection

    goods = demo_market_catalogue()
    found, shape = [goods.text(k) for k in range(len(goods.items))], (1, 2 * features.BUCKETS)
    kinds: list[dict[str, Any]] = [{"ngram_range": (1, 2)}, {"ngram_range": (3, 5), "analyzer": "char_wb"}]
    vectorizers = [HashingVectorizer(n_features=features.BUCKETS, dtype=np.float32, **kind) for kind in kinds]
    counts = hstack([one.transform(found) for one in vectorizers], format="csr")
    ready = SparseRandomProjection(WIDTH, random_state=features.SEED).fit(np.zeros(shape, np.float32))

    def ours() -> None:
        features._projection.cache_clear()
        features.hashed_texts(found, WIDTH)

    def peer() -> None:
        projection = SparseRandomProjection(WIDTH, random_state=features.SEED).fit(np.zeros(shape, np.float32))
        projection.transform(hstack([one.transform(found) for one in vectorizers], format="csr")).toarray()

    return {OURS: ours, FLOOR: lambda: ready.transform(counts).toarray(), PEER: peer}, len(found)


def replies(numbers: int = NUMBERS) -> tuple[Ways, int]:
    """Return the ways to the bytes of a reply of so many numbers."""
    from flwr.app import ArrayRecord

    update = {"weight": np.random.default_rng(0).standard_normal((numbers // 100, 100), np.float32)}
    reply = TrainReply(1, update, {}, 0.5, 100, 3)

    def peer() -> None:
        for array in ArrayRecord({name: _array(a) for name, a in update.items()}).values():
            bytes(array.data)

    return {OURS: lambda: encode(reply), FLOOR: lambda: save(update), PEER: peer}, 1


def _array(numbers: np.ndarray) -> Any:
    from flwr.app import Array

    return Array(numbers)


CASES: dict[str, tuple[Callable[[], tuple[Ways, int]], str, str, str]] = {
    "FedRule update of a home, with its share of a round": (
        updates,
        "ms a client",
        "gradients by hand",
        "single replies",
    ),
    "enrolment of a home": (enrolments, "ms a home", "random draws alone", "data alone"),
    "evaluation at a home": (
        evaluations,
        "ms a home",
        "one forward pass for all homes",
        "the same with the client's choice",
    ),
    "training alone, ten rounds": (alone, "ms a home", "the run that it is compared with", "one home at a time"),
    "`recommend`": (
        lambda: commands("recommend", "--run", "floors", "--data", "demo:0-1"),
        "s",
        "import of NumPy",
        "import of PyTorch",
    ),
    "`export-model`": (
        lambda: commands("export-model", "floors", "--data", "demo:0-1", "--onnx", "model.onnx"),
        "s",
        "import of NumPy",
        "import of PyTorch",
    ),
    "gradients of a FedRule update, three steps": (
        gradients,
        "ms a client",
        "batched products by hand",
        "`torch.func`",
    ),
    "logits of a home's rules": (answers, "ms a home", "one forward pass for all homes", "one pass a home"),
    "vector of a text": (texts, "ms a text", "projection of ready counts", "scikit-learn"),
    "bytes of a reply of a million numbers": (replies, "ms", "`safetensors`", "Flower's `ArrayRecord`"),
}
"""Row -> its ways and their number of units, unit of its figures, and what floor and peer are."""


def measure(ways: Ways, units: int, turns: int) -> dict[str, float]:
    """Return the least milliseconds of processor time of each way for a unit."""
    best = dict.fromkeys(ways, float("inf"))
    for turn in range(turns + 1):
        for name, work in ways.items():
            start = _processor_seconds()
            work()
            if turn:  # the first one warms up
                best[name] = min(best[name], _processor_seconds() - start)
    return {name: 1000 * seconds / units for name, seconds in best.items()}


def _processor_seconds() -> float:
    """Return the processor time of this process and of its ended children."""
    return time.process_time() + sum(os.times()[2:4])


def section(document: Mapping[str, Any]) -> str:
    """Return the section of the page."""
    lines = [
        f"{TITLE}\n",
        "Processor time of parts of fedloom, of the least work for the same numbers, and of a peer, in turns.",
        f"Made by `python -m studies speed floors` ([floors.json](floors.json), one thread, load {document['load']:.0f}).\n",
        "| work | times the floor | fedloom | floor | peer | unit | the floor is | the peer is |",
        "|---|--:|--:|--:|--:|---|---|---|",
    ]
    for row in document["rows"]:
        figures = [row[OURS] / row[FLOOR], row[OURS], row[FLOOR], row[PEER]]
        cells = [f"{figure:.2g}".removeprefix("0") for figure in figures]
        lines.append(f"| {' | '.join([row['name'], *cells, row['unit'], row['floor_is'], row['peer_is']])} |")
    return "\n".join(lines) + "\n\n"


def write_section(page: Path, text: str) -> None:
    """Replace the section of the page, or write it before the first one."""
    rest = re.sub(rf"^{TITLE}\n.*?(?=^## )", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    first = rest.index("\n## ") + 1
    page.write_text(rest[:first] + text + rest[first:], "utf-8")


def main() -> None:
    """Measure, write the results and the section of the page."""
    parser = timing.options(__doc__, "floors")
    parser.add_argument("--turns", type=int, default=15, help="turns of each way, of which the quickest counts")
    parser.add_argument("--only", nargs="+", default=[*CASES], choices=CASES, help="rows to measure; the others stay")
    parser.add_argument(
        "--page-only", action="store_true", help="measure nothing; write the page from the stored results"
    )
    options = parser.parse_args()
    if not options.page_only:
        timing.use_few_threads()
        stored = json.loads(options.out.read_text("utf-8"))["rows"] if options.out.is_file() else []
        rows = {row["name"]: row for row in [*stored, *_rows(options.turns, options.only)]}
        found = {"rows": [rows[name] for name in CASES if name in rows], "load": os.getloadavg()[0]}
        timing.write(options.out, found, "torch", "flwr", "scikit-learn")
    text = section(json.loads(options.out.read_text("utf-8")))
    write_section(options.out.parent / PAGE, text)
    print(text)


def _rows(turns: int, only: Sequence[str]) -> Sequence[dict[str, Any]]:
    rows = []
    for name, (build, unit, floor, peer) in ((name, CASES[name]) for name in only):
        figures = measure(*build(), turns)
        rows.append({"name": name, "unit": unit, "floor_is": floor, "peer_is": peer, **figures})
    return rows


if __name__ == "__main__":
    main()
