"""Cross-entropies of stacked clients, and clients with finite updates."""

import subprocess
import sys

import pytest
import torch
from torch.func import grad, vmap
from torch.nn.functional import cross_entropy

from client.training.stacks import are_finite, cross_entropies


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
