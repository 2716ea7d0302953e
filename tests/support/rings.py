"""Market of items in a ring, and local training on it."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from client.trainers.pfgnn import PFGNNTrainer
from client.training.stacks import Tensors
from client.training.steps import Descent, initialize_moments
from common.methods.pfgnn import PFGNN

N, D, K, C = 11, 6, 4, 3


@dataclass(frozen=True)
class Ring:
    """Market of items in a ring, with random features, partly propagated."""

    features: Tensor
    propagated: Tensor
    pairs: Tensor

    def triples(self, generator: torch.Generator) -> Tensor:
        item = torch.randint(N, (16,), generator=generator)
        return torch.stack([item, (item + 1) % N, (item + 3) % N], dim=1)


def ring(seed: int = 0) -> Ring:
    source = torch.Generator().manual_seed(seed)
    x = torch.randn(N, D, generator=source)
    smooth = (x + x.roll(1, 0) + x.roll(-1, 0)) / 3
    return Ring(x, smooth, torch.stack([torch.arange(N), (torch.arange(N) + 1) % N], dim=1))


def start(plus: bool = True, has_summary: bool = True, exchange: str = "summary") -> Tensors:
    source = torch.Generator().manual_seed(7)
    random = {n: 0.4 * torch.randn(1, D, K, generator=source) for n in ("phi.mean", "phi.log_variance", "alpha")}
    clusters = {n: torch.randn(1, C, K, generator=source) for n in ("kappa", "xi")}
    clusters["xi"] = clusters["xi"] if has_summary else torch.zeros(1, C, K)
    included = {n: t for n, t in clusters.items() if plus and (n == "kappa" or exchange == "summary")}
    return {**random, "theta": torch.tensor([[1.0, 0.0]]), **included}


def run(begin: Tensors, steps: int = 5, fresh: bool = False, seed: int = 3, **options: Any) -> Descent:
    method = PFGNN(**{"optimizer": "sgd", "lr": 0.1, "clip_norm": 0.0, **options})
    generator = torch.Generator().manual_seed(seed)
    moments = initialize_moments(method, begin)
    return PFGNNTrainer(method).train([ring()], begin, moments, [generator], [fresh], steps)
