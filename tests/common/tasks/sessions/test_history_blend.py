"""The blend of a network with the local line."""

import torch
from torch import Tensor, nn

from common.tasks.sessions.history_blend import FEATURES, START, LocalBlend


class Constant(nn.Module):
    """A network that scores every item 1."""

    def forward(self, nodes: Tensor) -> Tensor:
        return torch.ones(len(nodes), 5)


def test_the_line_adds_to_the_items_it_knows() -> None:
    index = torch.tensor([[2, 4, 0], [1, 0, 0]])
    value = torch.zeros(2, 3, len(FEATURES))
    value[0, 0, 0], value[0, 1, 2], value[1, 0, 1] = 3.0, 0.5, 2.0
    alone, blended = LocalBlend(Constant())((torch.zeros(2, 1),), index, value)
    torch.testing.assert_close(alone, torch.ones(2, 5))
    expected = torch.full((2, 5), START)
    expected[0, 2] += (3.0 + 1) * START
    expected[0, 4] += (0.5 + 1) * START
    expected[1, 1] += (2.0 + 1) * START
    torch.testing.assert_close(blended, expected)
