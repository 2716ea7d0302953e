"""Gradients of stacked clients on the rows that their data touch."""

import pytest
import torch

from client.state import MemoryStore
from client.training.descent import stack_on_rows
from client.training.participant import Participant, build_generator
from client.training.stacks import stack
from client.training.steps import plain_gradient
from common.models import parameters, tensors
from common.tasks.rules.vocabulary import RuleCatalogue
from common.wire.messages import TrainRequest
from tests.support.build import learner_of, task_model
from tests.support.toys import CATALOGUE, configured, toy_homes

WIDE = RuleCatalogue(
    entities=CATALOGUE.entities,
    relations=CATALOGUE.relations + tuple(f"opens → turn to {k}" for k in range(20, 60)),
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
