"""Networks of the markets task: default pair scorer, Siamese, SPE, and PF-GNN's encoder and pooling.

On real data no network came near a count-weighted random walk on the market's graph, and pooling the markets' graphs lowers
the metrics (explore-markets-sessions.md A2-A4). The weights of features do transfer between markets. The scorer starts as the
walk and trains its weights over all markets. Queries without edges, which are new in a market, have separate weights.

Shapes: width d, embedding k, V items of the catalogue.

Parameters have the paper's letters. PF-GNN+ shares `phi` and `xi`; `theta`, `alpha` and `kappa` are private to a market.
Shapes: n items of a market, width d, embedding k, c clusters.

Shapes: n items, c clusters, width k. Z n × k, κ c × k, C n × c, ξ c × k.
"""

from dataclasses import dataclass
from math import log
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, relu, softplus

from common.methods.pfgnn import PFGNN
from common.tasks.markets.blend import BLENDED, START
from common.tasks.markets.options import MarketsOptions
from common.tasks.markets.pairs import FEATURES
from common.tasks.markets.vocabulary import MarketCatalogue


class PairScorer(nn.Module):
    """Linear scorer s_ab = Σ_f w_f x_f(a, b), without bias.

    On top of a closed form, which has the features `BLENDED` and adds its weights, all w_f are 0 before training.
    """

    def __init__(self, *, on_top: bool = False) -> None:
        super().__init__()
        start = dict.fromkeys(BLENDED, 0.0) if on_top else {name: START.get(name, 0.0) for name in FEATURES}
        self.scorer = nn.Linear(len(start), 1, bias=False)
        with torch.no_grad():
            self.scorer.weight.copy_(torch.tensor([[*start.values()]]))

    def forward(self, features: Tensor) -> Tensor:
        """Compute scores … of features … × F."""
        scores: Tensor = self.scorer(features).squeeze(-1)
        return scores


class SiameseTower(nn.Module):
    """Siamese tower Z = W₂ max(0, W₁x + b₁) + b₂ on the unit sphere, shared by both items of a pair.

    Args:
        width: Width d of the features.
        embedding: Width k of embedding and hidden layer.
    """

    def __init__(self, width: int, embedding: int) -> None:
        super().__init__()
        layers = {"hidden": nn.Linear(width, embedding), "output": nn.Linear(embedding, embedding)}
        self.tower = nn.ModuleDict(layers)

    def forward(self, x: Tensor) -> Tensor:
        """Embed rows of X, … × d -> … × k of norm 1."""
        return normalize(self.tower["output"](relu(self.tower["hidden"](x))), dim=-1)


class SemiParametric(nn.Module):
    """SPE network z_a = (1 − δ_a)·xW + δ_a·e_a with δ_a = σ(γ₁ ln(1 + deg a) + γ₂).

    After SPE (Hu et al. 2019): an item's degree weighs its content features against its own vector e. Deviations: no
    autoencoder, and BPR loss as for the other networks. All e start at zero. The parameter `ids` (the vectors e) never leaves
    the client; its changed rows would reveal the market's items.

    Args:
        width: Width d of the features.
        embedding: Width k of the embedding.
        items: Number V of items.
    """

    def __init__(self, width: int, embedding: int, items: int) -> None:
        super().__init__()
        self.phi = nn.Parameter(nn.init.xavier_uniform_(torch.empty(width, embedding)))
        self.gamma = nn.Parameter(torch.tensor([1.0, -2.0]))
        self.theta = nn.Parameter(torch.tensor([1.0, 0.0]))
        self.ids = nn.Parameter(torch.zeros(items, embedding))

    def forward(self, x: Tensor, items: Tensor, degrees: Tensor) -> Tensor:
        """Embed rows of X, … × d, of items with those catalogue indices and degrees, … -> … × k."""
        delta = torch.sigmoid(self.gamma[0] * degrees.log1p() + self.gamma[1]).unsqueeze(-1)
        mixed: Tensor = (1 - delta) * (x @ self.phi) + delta * self.ids[items]
        return mixed


LARGEST_LOG_VARIANCE = 20.0
"""Maximum of ln v, a standard deviation of e¹⁰, as in the authors' code."""

SMALLEST_PRIOR_VARIANCE = 1e-4
"""Minimum of the prior variance α(X)."""


@dataclass(frozen=True)
class Pooling:
    """Options of the clustering operator of PF-GNN+."""

    clusters: int
    """Number c of clusters."""
    shares_summary: bool
    """True if ξ is a parameter of the model; False if κ is exchanged instead."""


class MarketNetwork(nn.Module):
    """SGC network Z = (S^m X)W with W = `phi.mean` (Eq 3).

    A variational encoder has a second W for ln v and the prior's W_α. The input is S^m X, computed once per market. The paper's
    outer σ is left out, as in the authors' code.

    Args:
        width: Width d of the features.
        embedding: Width k of the embedding.
        variational: True if the encoder gives a distribution q = N(m, diag v) (Eq 6).
        pooling: Options for κ and ξ of PF-GNN+; None without them.
    """

    def __init__(self, width: int, embedding: int, *, variational: bool, pooling: Pooling | None = None) -> None:
        super().__init__()
        encoders = ("mean", "log_variance") if variational else ("mean",)
        start = {name: nn.init.xavier_uniform_(torch.empty(width, embedding)) for name in encoders}
        self.phi = nn.ParameterDict({name: nn.Parameter(values) for name, values in start.items()})
        self.theta = nn.Parameter(torch.tensor([1.0, 0.0]))
        self.alpha = nn.Parameter(torch.zeros(width, embedding)) if variational else None
        self.kappa = nn.Parameter(2 * torch.rand(pooling.clusters, embedding) - 1) if pooling else None
        summary = pooling is not None and pooling.shares_summary
        self.xi = nn.Parameter(torch.zeros(pooling.clusters, embedding)) if pooling and summary else None

    def forward(self, x: Tensor) -> Tensor:
        """Compute the means m of rows of S^m X, … × d -> … × k."""
        mean: Tensor = x @ self.phi["mean"]
        return mean


def log_variances(x: Tensor, weight: Tensor, start: float) -> Tensor:
    """Compute ln v = ln v₀ + x W_v of rows of S^m X, … × d -> … × k; v₀ (`start`) is 1 in the paper.

    W_v has no bias and rows of X have norm at most 1. With v₀ = 1 the sampling variance exceeds the mean for many rounds.
    """
    return (x @ weight + log(start)).clamp(max=LARGEST_LOG_VARIANCE)


def prior_variances(x: Tensor, weight: Tensor) -> Tensor:
    """Compute α(X) = softplus(XW_α) + 1e-4 of rows of X, … × d -> … × k."""
    return softplus(x @ weight) + SMALLEST_PRIOR_VARIANCE


Summary = Literal["sum", "centroid"]
"""`sum`: ξ = CᵀZ, which grows with the number of items; `centroid`: cluster means diag(Cᵀ1)⁻¹CᵀZ."""

RIDGE, WIDE_RIDGE = 1e-12, 1e-6
"""ε of CᵀC + εI as a share of tr/c, in double precision; the wide one (paper) if clusters coincide."""

LARGEST_CONDITION = 1e8
"""Condition number of CᵀC above which clusters coincide.

A pseudo-inverse would truncate them, but its gradient is wrong there: the truncated values are not exact zeros.
"""


@dataclass(frozen=True)
class Unpooled:
    """Unpooled embeddings Z̃ = (Cᵀ)⁺ξ and the condition of the inverse."""

    embeddings: Tensor
    """Z̃, n × k, of rank at most c."""
    condition: float
    """Condition number of CᵀC; infinite where it is singular."""

    @property
    def degenerate(self) -> bool:
        """True if clusters coincide and the wide ridge was used; CᵀZ̃ = ξ then holds up to their differences."""
        return self.condition > LARGEST_CONDITION


def assignments(z: Tensor, kappa: Tensor, tau: float) -> Tensor:
    """Compute C_ab ∝ (1 + ‖z_a − κ_b‖²/τ)^(−(τ+1)/2), n × c; each row sums to 1.

    The paper's rows sum to 1 over "n"; here a row runs over the c clusters. τ → ∞ gives exp(−‖z_a − κ_b‖²/2).
    """
    lengths = z.square().sum(1, keepdim=True) + kappa.square().sum(1)
    squares = torch.addmm(lengths, z, kappa.T, alpha=-2).clamp(min=0)
    return torch.softmax(-(tau + 1) / 2 * torch.log1p(squares / tau), dim=1)


def summarize(c: Tensor, z: Tensor, summary: Summary) -> Tensor:
    """Compute ξ of embeddings under assignments C, c × k."""
    total = c.T @ z
    return total if summary == "sum" else total / _mass(c).unsqueeze(1)


def unpool(c: Tensor, xi: Tensor, summary: Summary) -> Unpooled:
    """Compute Z̃ = (Cᵀ)⁺ξ = C(CᵀC)⁻¹ξ; for ξ = CᵀZ, the orthogonal projection P_C Z.

    Means of `centroid` are first converted to sums. The paper's (CCᵀ)⁻¹C inverts an n × n matrix of rank c; this is (CCᵀ)⁺C.
    """
    c64, total = c.double(), xi.double() if summary == "sum" else _mass(c).double().unsqueeze(1) * xi.double()
    gram = c64.T @ c64
    condition = _condition(gram.detach())
    share = RIDGE if condition <= LARGEST_CONDITION else WIDE_RIDGE
    ridge = share * gram.diagonal().mean() * torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
    weights = torch.cholesky_solve(total, torch.linalg.cholesky(gram + ridge))
    return Unpooled(c @ weights.to(c.dtype), condition)


def _mass(c: Tensor) -> Tensor:
    """Compute Cᵀ1, the number of items of each cluster, c."""
    return c.sum(0).clamp(min=torch.finfo(c.dtype).tiny)


def _condition(gram: Tensor) -> float:
    values = torch.linalg.eigvalsh(gram)
    smallest, largest = float(values[0]), float(values[-1])
    return largest / smallest if smallest > 0 else float("inf")


def build_market_model(catalogue: MarketCatalogue, options: MarketsOptions, *, pfgnn: PFGNN | None = None) -> nn.Module:
    """Build the paper's network of the options.

    Args:
        catalogue: Vocabulary of the run; only the shape of SPE depends on it.
        options: Options of the task.
        pfgnn: Options of PF-GNN or PF-GNN+, whose encoder is variational and may pool; None for other methods.
    """
    if options.network == "siamese":
        return SiameseTower(options.width, options.embedding)
    if options.network == "spe":
        return SemiParametric(options.width, options.embedding, len(catalogue.items))
    pooling = Pooling(pfgnn.clusters, pfgnn.exchange == "summary") if pfgnn and pfgnn.plus else None
    return MarketNetwork(options.width, options.embedding, variational=pfgnn is not None, pooling=pooling)
