"""GraphSAGE of PyTorch Geometric for task `rules`: a network for fedloom in another package."""

from typing import TYPE_CHECKING

from common.api import NetworkSpec

if TYPE_CHECKING:
    from torch import nn


def build(inputs: int, outputs: int) -> "nn.Module":
    """Build the network of F device types and R relations."""
    from sage_network.network import Sage

    return Sage(inputs, outputs)


NETWORK = NetworkSpec("sage", "rules", "GraphSAGE and a decoder of pairs, by PyTorch Geometric", build)
