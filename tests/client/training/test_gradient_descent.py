"""Gradients of stacked clients."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.func import grad, vmap
from torch.nn.functional import cross_entropy

from client.state import MemoryStore
from client.tasks.learner import FastLoss
from client.tasks.rules.learner import CLOSED
from client.training.descent import stack_on_rows
from client.training.participant import Participant, build_generator
from client.training.stacks import are_finite, cross_entropies, stack
from client.training.steps import build_step, descend, differentiate, grad_and_value, initialize_moments, plain_gradient
from common.methods.fedavg import FedAvg
from common.models import parameters, tensors
from common.tasks.rules.vocabulary import RuleCatalogue
from common.wire.messages import TrainRequest
from tests.support.build import learner_of, task_model
from tests.support.toys import CATALOGUE, configured, toy_homes

ROOT = Path(__file__).parents[3]

PROGRAM = """
import sys
from pathlib import Path
from client.data.read import read_all
from common.config.parse import parse
from deploy.simulation.grid import simulate
config = parse({"task": "ratings", "method": "fedavg", "run-id": "fresh", "rounds": 1})
simulate(config, read_all("ratings", "demo:0-2"), Path(sys.argv[1]))
sys.exit("torch._dynamo" in sys.modules)
"""


@pytest.mark.parametrize("clients", [1, 3])
def test_gradients_equal_those_of_each_client_bit_for_bit(clients: int) -> None:
    learners = [learner_of(configured(), CATALOGUE, [home]) for home in toy_homes(clients)]
    model, generator = parameters(learners[0].module), torch.Generator().manual_seed(0)
    start = stack(
        [{n: t + torch.randn(t.shape, generator=generator) for n, t in tensors(model).items()} for _ in learners]
    )
    batch = stack([learner.batch(TrainRequest(1, "", model)) for learner in learners])
    inputs = {n: t[:, 0] for n, t in stack([learner.step_inputs(1, generator) for learner in learners]).items()}
    gradient, loss = differentiate(learners[0].loss)(start, batch, inputs)
    expected, expected_loss = vmap(grad_and_value(learners[0].loss))(start, batch, inputs)
    assert torch.equal(loss, expected_loss)
    assert all(torch.equal(gradient[n], expected[n]) for n in expected)
    assert all(g.is_contiguous() and not g.requires_grad for g in gradient.values())


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("model", ["default", "paper"])
def test_a_fast_loss_equals_the_loss(model: str, closed: bool) -> None:
    a, b, c = toy_homes(3)
    config = configured().model_copy(update={"model": model})
    learners = [learner_of(config, CATALOGUE, homes) for homes in ([a, b], [c])]
    generator, request = torch.Generator().manual_seed(0), TrainRequest(1, "", parameters(learners[0].module))
    start = stack([{n: torch.randn(t.shape, generator=generator) for n, t in tensors(request.model).items()}] * 2)
    batch = stack([learner.batch(request) for learner in learners])
    batch |= {CLOSED: torch.randn(batch["labels"].shape, generator=generator)} if closed else {}
    steps = stack([learner.step_inputs(2, generator) for learner in learners])
    fast, plain = plain_gradient(learners[0]), differentiate(learners[0].loss)
    assert isinstance(learners[0], FastLoss)
    for t in range(2):
        inputs = {n: masks[:, t] for n, masks in steps.items()}
        (gradient, loss), (expected, expected_loss) = (one(start, batch, inputs) for one in (fast, plain))
        torch.testing.assert_close(loss, expected_loss, rtol=1e-6, atol=1e-6)
        for name, g in expected.items():
            torch.testing.assert_close(gradient[name], g, rtol=1e-5, atol=1e-6)
            assert g.any()


@pytest.mark.parametrize("rule", ["sgd", "adam"])
def test_descent_does_not_change_its_arguments(rule: str) -> None:
    options = FedAvg(optimizer=rule)
    start = {"w": torch.ones(2, 3)}
    moments = initialize_moments(options, start)
    descent = descend(
        lambda params, batch, inputs: (dict(params), torch.ones(2)),
        start,
        batch={},
        inputs={},
        steps=2,
        step=build_step(options),
        moments=moments,
        clip_norm=0.0,
    )
    assert (descent.params["w"] < 1).all()
    assert (start["w"] == 1).all()
    assert moments.count.tolist() == [0, 0]
    assert all(not m.any() for group in (moments.first, moments.second) for m in group.values())


def test_training_without_noise_imports_no_compiler(tmp_path: Path) -> None:
    assert subprocess.run([sys.executable, "-c", PROGRAM, tmp_path], cwd=ROOT, check=False).returncode == 0


def test_cross_entropies_and_their_gradients_equal_those_of_pytorch() -> None:
    logits = torch.randn(3, 7, 50, generator=torch.Generator().manual_seed(0))
    targets = torch.arange(21).reshape(3, 7)
    ours = vmap(grad(lambda x, t: cross_entropies(x, t).sum()))(logits, targets)
    theirs = vmap(grad(lambda x, t: cross_entropy(x, t, reduction="none").sum()))(logits, targets)
    assert torch.equal(ours, theirs)
    assert torch.equal(cross_entropies(logits[0], targets[0]), cross_entropy(logits[0], targets[0], reduction="none"))


@pytest.mark.parametrize("others", [(1.0, 1.0), (torch.finfo().max, torch.finfo().max)])
def test_an_update_is_finite_if_all_its_numbers_are(others: tuple[float, float]) -> None:
    rows = [others, (torch.inf, 1.0), (torch.inf, -torch.inf), others, (torch.nan, 1.0)]
    updates = {"a": torch.tensor(rows), "b": torch.zeros(5, 3, 2)}
    updates["b"][3, 2, 1] = -torch.inf
    assert are_finite(updates) == [True, False, False, False, False]
    assert are_finite({"a": torch.tensor([others, others])}) == [True, True]


def test_gradients_of_cross_entropies_import_no_sympy() -> None:
    program = (
        "import sys, torch; from torch.func import vmap; from client.training.steps import grad_and_value;"
        " from client.training.stacks import cross_entropies;"
        " loss = lambda x, t: cross_entropies(x, t).sum();"
        " vmap(grad_and_value(loss))(torch.zeros(2, 3, 4), torch.zeros(2, 3, dtype=torch.int64));"
        " sys.exit('sympy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


WIDE = RuleCatalogue(
    entities=CATALOGUE.entities, relations=CATALOGUE.relations + tuple(f"opens → turn to {k}" for k in range(20, 60))
)


def draw_participants(clients: int, model: str) -> list[Participant]:
    config = configured().model_copy(update={"model": model})
    learners = [learner_of(config, WIDE, [home]) for home in toy_homes(clients)]
    request = TrainRequest(1, "toy:0", parameters(task_model(config, WIDE)))
    return [Participant(f"client-{k}", "toy", 0, own, MemoryStore(), request, 1) for k, own in enumerate(learners)]


@pytest.mark.parametrize("model", ["default", "paper"])
def test_gradients_on_touched_rows_equal_those_on_whole_tables(model: str) -> None:
    clients = draw_participants(3, model)
    start = stack([{n: t + torch.randn(t.shape) for n, t in tensors(p.request.model).items()} for p in clients])
    inputs = {n: t[:, 0] for n, t in stack([p.learner.step_inputs(1, build_generator(p)) for p in clients]).items()}
    plain = plain_gradient(clients[0].learner)
    whole, losses = plain(start, stack([p.batch() for p in clients]), inputs)
    batch, gradient_and_loss = stack_on_rows(clients, start, plain)
    gradient, found = gradient_and_loss(start, batch, inputs)
    assert batch["edges"][..., 2].max() < clients[0].batch()["edges"][..., 2].max()
    torch.testing.assert_close(found, losses)
    for name, expected in whole.items():
        torch.testing.assert_close(gradient[name], expected)
        assert torch.equal(gradient[name] != 0, expected != 0)


def test_a_client_alone_trains_on_whole_tables() -> None:
    [alone] = draw_participants(1, "default")
    batch, _ = stack_on_rows([alone], {}, plain_gradient(alone.learner))
    assert torch.equal(batch["edges"][0], alone.batch()["edges"])
