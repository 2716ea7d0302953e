"""Central training of SR-GNN on all clients' sessions (§2.6): upper bound, and check of the model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from client.tasks.sessions.data.visitors import Case, SplitVisitor, cases_of
from client.tasks.sessions.learner import collate
from common.tasks.sessions.model import SRGNN, build_session_model
from common.tasks.sessions.options import SessionsOptions
from common.tasks.sessions.task import ranks, session_metrics
from studies.harness.row import Metrics
from studies.sessions.loss import next_item_loss

BATCH, L2, SHRINK_EVERY = 100, 1e-5, 3
"""Examples a step, weight decay, and epochs until the rate is divided by ten, as in the reference."""


@dataclass(frozen=True)
class Central:
    """One central training.

    Args:
        splits: Training sessions and test cases.
        items: Number of items V.
        options: Width and longest session.
        rate: Rate of Adam.
        epochs: Passes over all examples.
        seed: Seed of parameters and order.
    """

    splits: Sequence[SplitVisitor]
    items: int
    options: SessionsOptions
    rate: float
    epochs: int
    seed: int

    def run(self, *, validation: bool) -> dict[int, Metrics]:
        """Return metrics after each epoch, on the validation or the test cases."""
        torch.manual_seed(self.seed)
        model = build_session_model(self.items, self.options)
        assert isinstance(model, SRGNN)
        adam = torch.optim.Adam(model.parameters(), self.rate, weight_decay=L2, fused=True)
        schedule = torch.optim.lr_scheduler.StepLR(adam, SHRINK_EVERY)
        held = [case for split in self.splits for case in (split.validation if validation else split.test)]
        curve = {}
        for epoch in range(1, self.epochs + 1):
            for cases in self._batches(epoch):
                graphs = collate([c.prefix for c in cases], [c.target for c in cases], self.options.max_length)
                adam.zero_grad()
                vectors = model.vectors(*graphs.graph)
                torch.autograd.backward(next_item_loss(vectors, model.embedding.weight, graphs.target).mean())
                adam.step()
            schedule.step()
            curve[epoch] = evaluate(model, held, self.options.max_length)
        return curve

    def _batches(self, epoch: int) -> Iterator[list[Case]]:
        """Yield batches of prefixes of similar length, in random order."""
        cases = [case for split in self.splits for session in split.train for case in cases_of(session)]
        rng = np.random.default_rng((self.seed, epoch))
        mixed = rng.permutation(len(cases))
        lengths = np.array([len(cases[k].prefix) for k in mixed])
        order = mixed[np.argsort(lengths, kind="stable")]
        cut = np.split(order, range(BATCH, len(order), BATCH))
        for place in rng.permutation(len(cut)):
            yield [cases[k] for k in cut[place]]


def evaluate(model: SRGNN, cases: Sequence[Case], max_length: int) -> dict[str, float]:
    """Return metrics over all cases."""
    places, losses = [], []
    for first in range(0, len(cases), 512):
        chunk = cases[first : first + 512]
        targets = np.array([case.target for case in chunk])
        graphs = collate([case.prefix for case in chunk], targets.tolist(), max_length)
        with torch.no_grad():
            logits = model(*graphs.graph)
            losses.append(torch.nn.functional.cross_entropy(logits, graphs.target, reduction="none").numpy())
        places.append(ranks(logits.numpy(), targets))
    return session_metrics(np.concatenate(places), np.concatenate(losses))
