"""Parts of fedloom as multiples of the least work for the same numbers, and of a peer, in one run.

`python -m studies speed floors` takes turns of three ways in one process: fedloom's, a floor and a peer. A floor does the
bare arithmetic by hand, on data that are ready. A figure is processor time, the least over the turns, which other work of
the machine affects little. Writes JSON, and the table that leads the page.
"""

import json
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import save
from scipy.sparse import hstack
from torch import Tensor
from torch.func import grad_and_value, vmap

from client.data.read import partition, read_all
from client.tasks.learner import AnswersTogether
from client.tasks.markets.data import features
from client.tasks.registry import CLIENT_TASKS, build_learner
from client.training.foresight import Question, foreseen
from client.training.stacks import Tensors, stack
from client.training.steps import plain_gradient
from common.arrays import Arrays
from common.config.parse import parse
from common.models import parameters, tensors
from common.tasks.markets.vocabulary import demo_market_catalogue
from common.wire.codec import encode
from common.wire.messages import TrainReply, TrainRequest
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
            start = time.process_time()
            work()
            if turn:  # the first one warms up
                best[name] = min(best[name], time.process_time() - start)
    return {name: 1000 * seconds / units for name, seconds in best.items()}


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
    parser.add_argument(
        "--page-only", action="store_true", help="measure nothing; write the page from the stored results"
    )
    options = parser.parse_args()
    if not options.page_only:
        timing.use_few_threads()
        timing.write(
            options.out, {"rows": _rows(options.turns), "load": os.getloadavg()[0]}, "torch", "flwr", "scikit-learn"
        )
    text = section(json.loads(options.out.read_text("utf-8")))
    write_section(options.out.parent / PAGE, text)
    print(text)


def _rows(turns: int) -> Sequence[dict[str, Any]]:
    rows = []
    for name, (build, unit, floor, peer) in CASES.items():
        figures = measure(*build(), turns)
        rows.append({"name": name, "unit": unit, "floor_is": floor, "peer_is": peer, **figures})
    return rows


if __name__ == "__main__":
    main()
