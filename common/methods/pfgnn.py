"""Options of PF-GNN and PF-GNN+: shared encoder and summary of market graphs (algorithms.md §5)."""

from typing import ClassVar, Literal

from pydantic import Field

from common.methods.base import MethodOptions, MethodSpec
from common.tasks.options import Capabilities, TaskOptions


class PFGNN(MethodOptions):
    """PF-GNN+: markets fit φ_i near φ and clustered summaries ξ_i near ξ (Eq 13–16; Algorithms 1, 2).

    θ, α and κ stay with the market. A local step is one of the n_r steps of Algorithm 2: θ, α by a gradient on Eq 15, then
    κ, φ by a gradient on Eq 16. It uses `tasks.markets.batch` BPR triples and all items of the market.
    """

    name: ClassVar[str] = "pfgnn"

    optimizer: Literal["sgd", "adam"] = "adam"

    lr: float = Field(0.01, gt=0)

    local_steps: int = Field(20, ge=1)

    clip_norm: float = Field(1.0, ge=0)
    """Maximum L2 norm of the gradient of θ, α and of the gradient of κ, φ. The proximal term of φ is
    solved in closed form and not clipped."""

    plus: bool = True
    """True for PF-GNN+, with clusters and their summary; False for PF-GNN (Eq 13), which shares φ alone."""

    exchange: Literal["summary", "kappa"] = "summary"
    """Second shared array: `summary` is the summary ξ, as in the paper; `kappa` is the centroids κ, as in
    the authors' code."""

    summary: Literal["sum", "centroid"] = "sum"
    """Form of the summary: `sum` is ξ = CᵀZ, as in the paper, whose mean is dominated by large markets.
    `centroid` is the mean of each cluster."""

    beta: float = Field(0.5, gt=0, le=1)
    """Factor β = 2λ_w·η_s of the server step φ ← (1 − β)φ + β·mean φ_i (Eq 14); 1 is plain averaging."""

    lambda_w: float = Field(1.0, ge=0)
    """Weight λ_w of the proximal term of φ_i, towards φ."""

    lambda_s: float = Field(0.01, ge=0)
    """Weight λ_s of the proximal term of ξ_i towards ξ, or of κ_i towards κ. For sums it is divided by n²,
    like the reconstruction term."""

    reconstruction: float = Field(1.0, ge=0)
    """Weight of ‖A − E[A | P⁻¹(ξ)]‖²/n² (Eq 15); 0 omits the term."""

    rows: int = Field(64, ge=0)
    """Number of items whose rows of A estimate the reconstruction term and the divergence in a step. 0, or
    a market with no more items, uses all."""

    clusters: int = Field(24, ge=1)
    """Number c of clusters."""

    tau: float = Field(1.0, gt=0)
    """Temperature τ of the kernel that assigns items to clusters; the authors' example has .001."""

    centres: Literal["kmeans", "drawn"] = "kmeans"
    """Initial centroids κ. `kmeans`: k-means++ on the market's own items after its first fit, matched to
    the server's centroids. `drawn`: the server's centroids."""

    prior: Literal["learnable", "standard"] = "learnable"
    """Prior of the embeddings: `learnable` is N(0, diag α(X)) with α a network of X, as in the paper.
    `standard` is N(0, I), as in the authors' code."""

    divergence: float = Field(1.0, ge=0)
    """Weight of the mean divergence from the prior, times 1/n. Without 1/n the posterior collapses."""

    start_variance: float = Field(0.01, gt=0)
    """Initial variance v₀ in ln v = ln v₀ + S^mX·W_v. The paper's v₀ is 1; samples are then mostly random
    for hundreds of steps."""

    def capabilities(self) -> Capabilities:
        """Return the capabilities under these options."""
        return Capabilities(
            tasks=frozenset({"markets"}),
            tasks_reason="shares encoders and summaries of items",
            per_step=False,
            private_layers="head",
            shared_head=frozenset({"kappa"} if self.exchange == "kappa" else ()),
            own_model="trained",
            replies_reason="takes encoders and cluster summaries of single markets",
        )

    def check(self, task: TaskOptions, model: str) -> None:
        """Raise ValueError if the paper's model is combined with a network other than SGC."""
        if model == "paper" and getattr(task, "network", "") != "sgc":
            raise ValueError("pfgnn with model=paper needs an SGC encoder; set tasks.markets.network=sgc")


METHOD = MethodSpec(
    PFGNN,
    "Cross-market recommendation with shared encoders and graph summaries",
    paper="algorithms.md §5",
    default_task="markets",
)
