"""Blend of a network with features of the visitor's history."""

import torch
from torch import Tensor, nn

from common.tasks.sessions.model import INITIAL_WEIGHT, LocalBlend
from common.tasks.sessions.slist import FEATURES


class Constant(nn.Module):
    """Network that scores every item 1."""

    def forward(self, nodes: Tensor) -> Tensor:
        return torch.ones(len(nodes), 5)


def test_features_add_to_the_scores_of_their_items() -> None:
    index = torch.tensor([[2, 4, 0], [1, 0, 0]])
    value = torch.zeros(2, 3, len(FEATURES))
    value[0, 0, 0], value[0, 1, 2], value[1, 0, 1] = 3.0, 0.5, 2.0
    network, blended = LocalBlend(Constant())((torch.zeros(2, 1),), index, value)
    torch.testing.assert_close(network, torch.ones(2, 5))
    expected = torch.full((2, 5), INITIAL_WEIGHT)
    expected[0, 2] += (3.0 + 1) * INITIAL_WEIGHT
    expected[0, 4] += (0.5 + 1) * INITIAL_WEIGHT
    expected[1, 1] += (2.0 + 1) * INITIAL_WEIGHT
    torch.testing.assert_close(blended, expected)
