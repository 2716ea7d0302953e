"""SR-GNN and TAGNN: gated graph network with attention readout of a session (algorithms.md §2.6–2.7).

A batch is one graph of B disjoint sessions with M distinct items, K edges and N clicks in total; V items, width d. Short
sessions are not padded to the longest. Row 0 of the embedding is padding. Scores depend neither on the order of nodes nor on
padding.
"""

from math import sqrt

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from common.tasks.sessions.attention import gather_by_click, softmax_by_session, sum_by_session, target_scores
from common.tasks.sessions.options import SessionsOptions


def build_session_model(items: int, options: SessionsOptions) -> nn.Module:
    """Build the network of the options with parameters from U(−1/√d, 1/√d), torch's global generator."""
    network = SRGNN(items, options) if options.network == "srgnn" else TAGNN(items, options)
    bound = 1 / sqrt(options.hidden)
    for parameter in network.parameters():
        nn.init.uniform_(parameter, -bound, bound)
    with torch.no_grad():
        network.embedding.weight[0] = 0
    return network


class GatedGraph(nn.Module):
    """One step of the gated graph network, a GRU cell on the messages a.

    a = [A_in(HW_i + b) + b_i ‖ A_out(HW_o + b) + b_o].
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.incoming = nn.Linear(width, width)
        self.outgoing = nn.Linear(width, width)
        self.bias_in = nn.Parameter(torch.empty(width))
        self.bias_out = nn.Parameter(torch.empty(width))
        self.gates = nn.Linear(2 * width, 3 * width)
        self.recurrent = nn.Linear(width, 3 * width)

    def forward(self, h: Tensor, edges: Tensor, w_in: Tensor, w_out: Tensor) -> Tensor:
        """Compute items after one step, M × d, from M × d and the edges; see `SRGNN.forward`."""
        source, sink = edges.unbind(-2)
        before = _propagate(self.incoming(h), source, sink, w_in) + self.bias_in
        after = _propagate(self.outgoing(h), sink, source, w_out) + self.bias_out
        return self.update(h, before, after)

    def update(self, h: Tensor, before: Tensor, after: Tensor) -> Tensor:
        """Apply the GRU cell to H and the messages from earlier and later items, all … × d."""
        w_r, w_z, w_n = self.gates(torch.cat([before, after], dim=-1)).chunk(3, dim=-1)
        u_r, u_z, u_n = self.recurrent(h).chunk(3, dim=-1)
        r, z = torch.sigmoid(w_r + u_r), torch.sigmoid(w_z + u_z)
        n = torch.tanh(w_n + r * u_n)
        return n + z * (h - n)


class SRGNN(nn.Module):
    """SR-GNN (§2.6): score_j = s_h·e_j.

    s_h = W₃[s_g ‖ v_last] with s_g = Σ_i α_i v_i and α_i = qᵀσ(W₁v_last + W₂v_i + c).
    """

    def __init__(self, items: int, options: SessionsOptions) -> None:
        super().__init__()
        d, self.steps = options.hidden, options.steps
        self.embedding = nn.Embedding(items + 1, d)
        self.graph = GatedGraph(d)
        self.w1 = nn.Linear(d, d)
        self.w2 = nn.Linear(d, d, bias=False)
        self.q = nn.Linear(d, 1, bias=False)
        self.w3 = nn.Linear(2 * d, d)

    def forward(
        self, nodes: Tensor, edges: Tensor, w_in: Tensor, w_out: Tensor, clicks: Tensor, owner: Tensor, last: Tensor
    ) -> Tensor:
        """Compute logits of all items.

        Args:
            nodes: Distinct items of each session as rows of the embedding, session by session, M; 0 for padding.
            edges: Source and target node of each pair of consecutive clicks, 2 × K.
            w_in: A_in of each edge, K: 1/(number of edges into its target); 0 for padding.
            w_out: A_out of each edge, K: 1/(number of edges from its source); 0 for padding.
            clicks: Node of each click, session by session, N.
            owner: Session of each click, from 1, N; 0 for padding.
            last: Node of each session's last click, B.

        Returns:
            Logits, B × V.
        """
        return self.vectors(nodes, edges, w_in, w_out, clicks, owner, last) @ self.embedding.weight[1:].T

    def vectors(
        self, nodes: Tensor, edges: Tensor, w_in: Tensor, w_out: Tensor, clicks: Tensor, owner: Tensor, last: Tensor
    ) -> Tensor:
        """Compute s_h of each session, B × d; see `forward`."""
        return self._vectors(self._items(nodes, edges, w_in, w_out), clicks, owner, last)

    def _items(self, nodes: Tensor, edges: Tensor, w_in: Tensor, w_out: Tensor) -> Tensor:
        """Compute all nodes after the steps, M × d; row 0 of the embedding gets no gradient."""
        h = embedding(nodes, self.embedding.weight, padding_idx=0)
        for _ in range(self.steps):
            h = self.graph(h, edges, w_in, w_out)
        return h

    def _vectors(self, h: Tensor, clicks: Tensor, owner: Tensor, last: Tensor) -> Tensor:
        """Compute s_h, B × d, from the nodes."""
        sessions, v_last = last.shape[0], _rows(h, last)
        scores = self.q(torch.sigmoid(gather_by_click(self.w1(v_last), owner) + _rows(self.w2(h), clicks)))
        s_g = sum_by_session(self._alpha(scores, owner, sessions) * _rows(h, clicks), owner, sessions)
        s_h: Tensor = self.w3(torch.cat([s_g, v_last], dim=-1))
        return s_h

    def _alpha(self, scores: Tensor, owner: Tensor, sessions: int) -> Tensor:
        """Return α of clicks, N × 1."""
        return scores


class TAGNN(SRGNN):
    """TAGNN (§2.7): SR-GNN plus target attention.

    For each candidate t, s_t = Σ_i β_ti v_i with β_t = softmax_i(e_tᵀWv_i) is added to the readout. `tagnn` is the authors'
    code: scores (W₃[s_g ‖ v_last] + s_t)·e_t and a softmax of α. `tagnn_concat` is the paper: scores
    W₃[s_t ‖ v_last ‖ s_g]·e_t without that softmax. Unlike in the code, padding takes no part in a softmax.
    """

    def __init__(self, items: int, options: SessionsOptions) -> None:
        super().__init__(items, options)
        d, paper = options.hidden, options.network == "tagnn_concat"
        self.target = nn.Linear(d, d, bias=False)
        self.w_t = nn.Linear(d, d, bias=False) if paper else None  # columns of the paper's W₃ that multiply s_t

    def forward(
        self, nodes: Tensor, edges: Tensor, w_in: Tensor, w_out: Tensor, clicks: Tensor, owner: Tensor, last: Tensor
    ) -> Tensor:
        """Compute logits of all items; see `SRGNN.forward`."""
        h, candidates = self._items(nodes, edges, w_in, w_out), self.embedding.weight[1:]
        values = _rows(h if self.w_t is None else self.w_t(h), clicks)
        attended = target_scores(candidates, _rows(self.target(h), clicks), values, owner, last.shape[0])
        return attended + self._vectors(h, clicks, owner, last) @ candidates.T

    def _alpha(self, scores: Tensor, owner: Tensor, sessions: int) -> Tensor:
        return scores if self.w_t is not None else softmax_by_session(scores, owner, sessions)


def _propagate(messages: Tensor, source: Tensor, sink: Tensor, weights: Tensor) -> Tensor:
    """Sum weight × message of the source over the edges into each node, M × d."""
    weighted = _rows(messages, source) * weights.unsqueeze(-1)
    return torch.zeros_like(messages).scatter_add(0, sink.unsqueeze(-1).expand_as(weighted), weighted)


def _rows(table: Tensor, places: Tensor) -> Tensor:
    """Return rows of M × d at the places, … × d.

    `gather` replaces indexing, whose backward pass is slow for stacked clients.
    """
    width = table.shape[-1]
    return table.gather(0, places.reshape(-1, 1).expand(-1, width)).reshape(*places.shape, width)
