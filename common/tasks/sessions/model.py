"""Session models: SR-GNN, TAGNN, and the default blend with the visitor's history (§2.6-2.7).

The N clicks of all B sessions form one row. The owner of a click is its session, counted from 1; the owner of padding is 0.
Plain target attention stores several N × V arrays. Here candidates are processed in chunks, and the backward pass computes
each chunk again.

A batch is one graph of B disjoint sessions with M distinct items, K edges and N clicks in total; V items, width d. Short
sessions are not padded to the longest. Row 0 of the embedding is padding. Scores depend neither on the order of nodes nor on
padding.

On real data the visitor's own history ranks better than any network trained on all clients' sessions. The model adds both
scores with trained weights. The weights train on sessions that the network does not train on; otherwise the network's
weight is overestimated.
"""

from math import sqrt
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from common.tasks.sessions.options import SessionsOptions
from common.tasks.sessions.slist import FEATURES

CHUNK_SCORES = 2**16
"""Clicks × candidates of one chunk; fits a processor's cache, also for twenty stacked clients."""


def target_scores(candidates: Tensor, keys: Tensor, values: Tensor, owner: Tensor, sessions: int) -> Tensor:
    """Compute Σ_i β_ti (x_i·e_t) with β_t = softmax_i(e_t·k_i) over a session's clicks.

    The score is 0 for a session without clicks. The function is differentiable once.

    Args:
        candidates: Embeddings e_t, V × d.
        keys: Keys k_i, N × d.
        values: Values x_i, N × d.
        owner: Session of each click, N.
        sessions: Number B of sessions.

    Returns:
        Scores, B × V.
    """
    if torch.compiler.is_exporting():  # graphs for inference have neither chunks nor autograd functions
        return _attend(candidates, keys, values, owner, sessions)[3]
    scores: Tensor = _TargetScores.apply(candidates, keys, values, owner, sessions)  # type: ignore[no-untyped-call]  # as torch has it
    return scores


def softmax_by_session(scores: Tensor, owner: Tensor, sessions: int) -> Tensor:
    """Compute the softmax of N × C scores over each session's clicks; 0 for padding."""
    powers = _powers(scores, owner, sessions)
    return powers / gather_by_click(_floor(sum_by_session(powers, owner, sessions)), owner)


def sum_by_session(clicks: Tensor, owner: Tensor, sessions: int) -> Tensor:
    """Sum N × C values over each session's clicks, without padding: B × C."""
    return clicks.new_zeros(sessions + 1, clicks.shape[-1]).index_add(0, owner, clicks)[1:]


def gather_by_click(table: Tensor, owner: Tensor) -> Tensor:
    """Return the session's row for each click: N × C from B × C; any row for padding."""
    return table.gather(0, (owner - 1).clamp(min=0).unsqueeze(-1).expand(-1, table.shape[-1]))


class _TargetScores(torch.autograd.Function):
    """Autograd function of `target_scores`."""

    generate_vmap_rule = True

    @staticmethod
    def forward(candidates: Tensor, keys: Tensor, values: Tensor, owner: Tensor, sessions: int) -> Tensor:
        """Compute the scores, B × V."""
        return torch.cat([_attend(e, keys, values, owner, sessions)[3] for e in _chunks(candidates, owner)], dim=-1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Store the inputs only."""
        *tensors, ctx.sessions = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    @torch.no_grad()  # without it `torch.func.grad` stores every chunk for a second derivative
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        """Compute gradients: with p = x·e, s = Σβp and gradient g, ∂p = βg and ∂(e·k) = βg(p − s)."""
        candidates, keys, values, owner = ctx.saved_tensors
        d_candidates, d_keys, d_values = [], torch.zeros_like(keys), torch.zeros_like(values)
        chunks = _chunks(candidates, owner)
        for e, g in zip(chunks, torch.split(grads[0], [len(e) for e in chunks], dim=-1), strict=True):
            powers, total, p, s = _attend(e, keys, values, owner, ctx.sessions)
            d_p = powers * gather_by_click(g / total, owner)
            d_q = d_p * (p - gather_by_click(s, owner))
            d_candidates.append(d_p.T @ values + d_q.T @ keys)
            d_keys, d_values = d_keys + d_q @ e, d_values + d_p @ e
        return torch.cat(d_candidates), d_keys, d_values, None, None


def _attend(e: Tensor, keys: Tensor, values: Tensor, owner: Tensor, sessions: int) -> tuple[Tensor, ...]:
    """Return β·Z (N × C), Z (B × C), p = x_i·e_t (N × C) and Σ_i β p (B × C) of C candidates."""
    powers, p = _powers(keys @ e.T, owner, sessions), values @ e.T
    total = _floor(sum_by_session(powers, owner, sessions))
    return powers, total, p, sum_by_session(powers * p, owner, sessions) / total


def _powers(scores: Tensor, owner: Tensor, sessions: int) -> Tensor:
    """Compute exp(score − the session's maximum), N × C; 0 for padding, whose maximum is set to infinity."""
    places, width = owner.unsqueeze(-1).expand_as(scores), scores.shape[-1]
    lowest = torch.cat([scores.new_full((1, width), torch.inf), scores.new_full((sessions, width), -torch.inf)])
    return torch.exp(scores - lowest.scatter_reduce(0, places, scores.detach(), "amax").gather(0, places))


def _floor(total: Tensor) -> Tensor:
    """Replace the zero total of a session without clicks by the smallest normal number, to avoid NaN."""
    return total.clamp(min=torch.finfo(total.dtype).tiny)


def _chunks(candidates: Tensor, owner: Tensor) -> tuple[Tensor, ...]:
    return torch.split(candidates, max(1, CHUNK_SCORES // max(1, owner.numel())))


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


INITIAL_WEIGHT = 0.5
"""Initial value of every weight; gives a usable ranking before training."""


class LocalBlend(nn.Module):
    """Blend of network and history: logit_j = w₀·network_j + Σ_f (w_f x_jf + u_f [x_jf > 0]).

    x_j are the history features of item j. On top of a closed form, whose logits are added, all weights are 0 before training.
    """

    def __init__(self, network: nn.Module, *, on_top: bool = False) -> None:
        super().__init__()
        self.network, initial = network, 0.0 if on_top else INITIAL_WEIGHT
        self.scale = nn.Parameter(torch.full((1,), initial))
        self.weight = nn.Parameter(torch.full((2 * len(FEATURES),), initial))

    def forward(self, graph: tuple[Tensor, ...], index: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Compute logits of all items by the network alone, and blended.

        Args:
            graph: Arguments of the network; see `SRGNN.forward`.
            index: Items with history features, B × M; any item for padding.
            value: Features of those items, B × M × F; zero for padding.

        Returns:
            Two tensors, B × V; the gradient of the blend stops at the network.
        """
        network: Tensor = self.network(*graph)
        return network, blend(self.scale, self.weight, network.detach(), index, value)


def blend(scale: Tensor, weight: Tensor, network: Tensor, index: Tensor, value: Tensor) -> Tensor:
    """Return the network's scores times w₀ plus weighted history features; see `LocalBlend`."""
    history = torch.cat([value, (value > 0).to(value.dtype)], dim=-1) @ weight
    return (scale * network).scatter_add(1, index, history)
