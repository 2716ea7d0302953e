"""GCMC (van den Berg, Kipf and Welling 2017): graph convolution over homes and rules."""

import torch
from torch import Tensor, nn

from studies.rules.factors import WIDTH, Factors, Pairs

DROPOUT = 0.5
"""Rate at which messages are left out in training: a pair's own edge would reveal its label."""


class Convolved(Factors):
    """Factors after one graph convolution and a bilinear decoder.

    p_u = ReLU(Σ c·Q_q over the rules q of u), and q_q = ReLU(Σ c·P_u over its users u), with c = 1/√(|N_u|·|N_q|).
    """

    def __init__(self, pairs: Pairs, generator: torch.Generator) -> None:
        super().__init__(pairs, generator)
        self._edges, self._generator = pairs.edges, generator
        user, rule = pairs.edges
        sizes = torch.bincount(user, minlength=pairs.users)[user] * torch.bincount(rule, minlength=pairs.rules)[rule]
        self._scale = sizes.float().rsqrt()
        self.decoder = nn.Parameter(torch.eye(WIDTH))

    def factors(self) -> tuple[Tensor, Tensor]:
        """Return p of all users, decoded, and q of all rules."""
        user, rule = self._edges
        kept = torch.rand(len(self._scale), generator=self._generator) >= DROPOUT if self.training else None
        scale = (self._scale if kept is None else self._scale * kept / (1 - DROPOUT))[:, None]
        p = torch.zeros_like(self.user).index_add(0, user, scale * self.rule[rule]).relu()
        q = torch.zeros_like(self.rule).index_add(0, rule, scale * self.user[user]).relu()
        return p @ self.decoder, q
