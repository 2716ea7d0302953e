"""DP-SGD against plain SGD on the same homes, and the approvals of a round with noise.

`python -m studies speed record` takes local steps of the rules task over 250 demo homes, a record each, in turns.
One way is the plain gradient of their mean loss. The other is `private_gradient`, which clips each home's and adds noise.
Sampling of masks and noise counts. The ratio is the median over turns of the two times of a turn; its limit is 3.

Approvals are all of a round but its training: reservation, noise multiplier, charge to a ledger in memory, replay cache. Every
round has another cost, so that no noise multiplier is known from an earlier round. Their limit is 10 ms.
Prints two tables and writes JSON.
"""

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch.func import grad_and_value

from client.owner.policy import Policy
from client.privacy.dp_sgd import DpSgdNoise, private_gradient, sample_private_inputs
from client.privacy.simulation import in_memory
from client.tasks.registry import build_learner
from client.tasks.rules.data.generator import demo_homes
from client.tasks.rules.data.homes import Homes
from client.training.stacks import Tensors
from common.config.parse import parse
from common.models import parameters, tensors
from common.privacy.mechanisms import build_account, fresh_generator
from common.tasks.rules.vocabulary import demo_catalogue
from common.wire.messages import TrainRequest
from studies.speed import timing
from studies.speed.timing import median_ratio, time_in_turns, time_work

MAX_RATIO, MAX_APPROVAL_MS = 3.0, 10.0
"""Limits of the ratio of step times, and of the approvals of a round."""

PARAMETERS = 10_000
"""Numbers of a released vector, unit `client`."""

Turn = Callable[[], None]
"""Takes some steps from the same start."""


def turns(model: str, homes: int, steps: int) -> dict[str, Turn]:
    """Return the two ways to take `steps` steps."""
    config = parse({"method": "fedavg", "task": "rules", "model": model})
    learner = build_learner(config, Homes(demo_homes(0, homes, 0), demo_catalogue()))
    start = tensors(parameters(learner.module))
    batch = learner.batch(TrainRequest(1, "", {}))
    masks = partial(learner.step_inputs, steps, torch.Generator().manual_seed(0))
    noise = DpSgdNoise(1.0, 1.0, 0.5, fresh_generator)

    def private_inputs() -> Tensors:
        return {**masks(), **sample_private_inputs(start, len(batch["x"]), learner.examples, steps, noise)}

    return {
        "plain": partial(_descend, grad_and_value(learner.loss), start, batch, masks, steps),
        "private": partial(_descend, private_gradient(learner.loss, set()), start, batch, private_inputs, steps),
    }


def _descend(
    gradient: Callable[[Tensors, Tensors, Tensors], tuple[Tensors, torch.Tensor]],
    params: Tensors,
    batch: Tensors,
    sample: Callable[[], Tensors],
    steps: int,
) -> None:
    inputs = sample()
    for t in range(steps):
        direction, _ = gradient(params, batch, {n: each[t] for n, each in inputs.items()})
        params = {n: p - 0.1 * direction[n] for n, p in params.items()}


def approvals(unit: str, rounds: int) -> float:
    """Return the median milliseconds of the approvals of a round."""
    settings = {"method": "fedavg", "task": "rules", "privacy.unit": unit, "privacy.accounting": "filter"}
    config = parse({**settings, "privacy.epsilon": 8.0})
    budget, options, seconds = in_memory(Policy()).budget, config.privacy, []
    total = build_account(options).total(options.epsilon, options.delta)

    def approve(request: TrainRequest) -> None:
        reservation = budget.reserve(config, request)
        assert reservation
        reservation.noise(3, fresh_generator)
        mechanism = reservation.dp_sgd(3) if unit == "record" else reservation.mechanism(PARAMETERS)
        reservation.commit(mechanism, lambda: b"")
        reservation.acknowledge()

    for number in range(rounds + 1):
        request = TrainRequest(number, "run:0", {}, cost=total / (2 * rounds + number))
        seconds.append(time_work(partial(approve, request))[1])
    return 1e3 * statistics.median(seconds[1:])


def compare_steps(homes: int, steps: int, repetitions: int) -> list[dict[str, Any]]:
    """Return the milliseconds of a plain and of a private step of both models, and their ratio."""
    rows = []
    for model in ("default", "paper"):
        seconds = time_in_turns(turns(model, homes, steps), repetitions)
        step_ms = {name: 1e3 * statistics.median(values) / steps for name, values in seconds.items()}
        rows.append({"model": model, "step_ms": step_ms, "ratio": median_ratio(seconds["private"], seconds["plain"])})
    return rows


def main() -> None:
    """Measure, print, write."""
    parser = timing.options(__doc__, "record")
    parser.add_argument("--homes", type=int, default=250)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--repetitions", type=int, default=15, help="turns")
    parser.add_argument("--rounds", type=int, default=40, help="rounds of approvals")
    options = parser.parse_args()
    timing.use_few_threads()

    runs = compare_steps(options.homes, options.steps, options.repetitions)
    approval_ms = {unit: approvals(unit, options.rounds) for unit in ("client", "record")}
    steps = Table(
        "model", "plain, ms a step", "private, ms a step", "ratio", title=f"{options.homes} homes, limit {MAX_RATIO:g}"
    )
    for run in runs:
        steps.add_row(
            run["model"], *(f"{run['step_ms'][name]:.1f}" for name in ("plain", "private")), f"{run['ratio']:.2f}"
        )
    approved = Table("unit", "approvals, ms a round", title=f"limit {MAX_APPROVAL_MS:g} ms")
    for unit, milliseconds in approval_ms.items():
        approved.add_row(unit, f"{milliseconds:.2f}")
    Console().print(steps, approved)
    shape = {"homes": options.homes, "steps": options.steps, "limit": MAX_RATIO}
    timing.write(options.out, {**shape, "runs": runs, "approval_ms": approval_ms}, "torch")
