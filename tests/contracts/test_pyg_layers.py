"""Layers of our own against those of PyTorch Geometric: SR-GNN's gated graph, and SGC's propagation."""

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor, nn
from torch_geometric.nn import GatedGraphConv, SGConv

from client.tasks.markets.data.graph import propagated
from common.tasks.markets.model import MarketNetwork
from common.tasks.sessions.model import GatedGraph

M, D = 7, 5
EDGES = torch.tensor([[0, 1, 1, 3, 4, 6, 2], [1, 2, 3, 4, 1, 6, 0]])


def close(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)


def gated() -> tuple[GatedGraph, Tensor, Tensor, Tensor]:
    """Return our layer, nodes, and weights of edges in both directions."""
    torch.manual_seed(0)
    layer = GatedGraph(D)
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.5)
    return layer, torch.randn(M, D), torch.rand(EDGES.shape[1]), torch.rand(EDGES.shape[1])


def test_edges_of_one_direction_are_pygs_gated_graph_conv() -> None:
    ours, h, w_in, w_out = gated()
    theirs = GatedGraphConv(D, num_layers=1)
    with torch.no_grad():
        for bias in (ours.incoming.bias, ours.outgoing.bias, ours.bias_in, ours.bias_out):
            bias.zero_()
        ours.gates.weight[:, D:] = 0  # messages of later clicks
        theirs.weight[0] = ours.incoming.weight.T
        theirs.rnn.weight_ih.copy_(ours.gates.weight[:, :D])
        theirs.rnn.bias_ih.copy_(ours.gates.bias)
        theirs.rnn.weight_hh.copy_(ours.recurrent.weight)
        theirs.rnn.bias_hh.copy_(ours.recurrent.bias)
    close(ours(h, EDGES, w_in, w_out), theirs(h, EDGES, w_in))


def test_both_directions_are_pygs_messages_and_pytorchs_gru() -> None:
    ours, h, w_in, w_out = gated()
    conv, cell = GatedGraphConv(D, num_layers=1), nn.GRUCell(2 * D, D)
    with torch.no_grad():
        for name, layer in (("ih", ours.gates), ("hh", ours.recurrent)):
            getattr(cell, f"weight_{name}").copy_(layer.weight)
            getattr(cell, f"bias_{name}").copy_(layer.bias)
    before = conv.propagate(EDGES, x=ours.incoming(h), edge_weight=w_in) + ours.bias_in
    after = conv.propagate(EDGES.flip(0), x=ours.outgoing(h), edge_weight=w_out) + ours.bias_out
    close(ours(h, EDGES, w_in, w_out), cell(torch.cat([before, after], dim=-1), h))


def test_propagated_features_and_the_markets_network_are_pygs_sgc() -> None:
    torch.manual_seed(1)
    dense = torch.triu(torch.randint(0, 4, (M, M)).float(), 1)
    dense = dense + dense.T
    x, index = torch.randn(M, D), dense.nonzero().T
    network = MarketNetwork(D, 3, variational=False)
    theirs = SGConv(D, 3, K=3, bias=False)
    with torch.no_grad():
        theirs.lin.weight.copy_(network.phi["mean"].T)
    smooth = torch.from_numpy(propagated(csr_array(dense.numpy()), x.numpy().astype(np.float32), 3))
    close(network(smooth), theirs(x, index, dense[tuple(index)]))
