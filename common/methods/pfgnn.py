"""PF-GNN and PF-GNN+: markets that share an encoder and a summary of their items (algorithms.md §5)."""

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from common.methods.spec import Capabilities, MethodOptions, MethodSpec

if TYPE_CHECKING:
    from common.tasks.spec import ModelVariant, TaskOptions


class PFGNN(MethodOptions):
    """Each market fits φ_i near φ, and with `plus` a clustered summary ξ_i near ξ (Eq 13–16; Algorithms 1, 2).

    θ, α and κ stay with the market. A local step is one of Algorithm 2's n_r: θ, α by a gradient on Eq 15, then κ, φ by one
    on Eq 16, on `tasks.markets.batch` triples and all the market's items.
    """

    name: ClassVar[str] = "pfgnn"

    optimizer: Literal["sgd", "adam"] = "adam"

    lr: float = Field(0.01, gt=0)

    local_steps: int = Field(20, ge=1)

    clip_norm: float = Field(1.0, ge=0)
    """Largest Euclidean norm of a gradient, of θ, α and of κ, φ each; the pull of φ needs no bound, it is solved in closed
    form."""

    plus: bool = True
    """PF-GNN+, with clusters and their summary; false is PF-GNN (Eq 13), which shares φ alone."""

    exchange: Literal["summary", "kappa"] = "summary"
    """What is shared beside φ: the summary ξ, as in the paper; or the centres κ, as in the authors' code."""

    summary: Literal["sum", "centroid"] = "sum"
    """ξ = CᵀZ, as in the paper, in whose mean large markets weigh most; or the clusters' means."""

    beta: float = Field(0.5, gt=0, le=1)
    """β = 2λ_w·η_s of the server's step φ ← (1 − β)φ + β·mean φ_i (Eq 14); 1 is plain averaging."""

    lambda_w: float = Field(1.0, ge=0)
    """λ_w, pull of φ_i towards φ."""

    lambda_s: float = Field(0.01, ge=0)
    """λ_s, pull of ξ_i towards ξ, or of κ_i towards κ. Of sums it is divided by n², as the other term of that size is."""

    reconstruction: float = Field(1.0, ge=0)
    """Weight of ‖A − E[A | P⁻¹(ξ)]‖²/n² (Eq 15); 0 leaves it out."""

    rows: int = Field(64, ge=0)
    """Items from which a step estimates that term, by their rows of A, and the divergence; 0, or no more items in the market,
    takes all."""

    clusters: int = Field(24, ge=1)
    """c."""

    tau: float = Field(1.0, gt=0)
    """τ of the kernel that assigns items to clusters; the authors' example runs with .001."""

    centres: Literal["kmeans", "drawn"] = "kmeans"
    """Where κ starts: k-means++ on a market's own items after its first fit, numbered like the server's; or the server's."""

    prior: Literal["learnable", "standard"] = "learnable"
    """N(0, diag α(X)) with α a network of X, as in the paper; or N(0, I), as in the authors' code."""

    divergence: float = Field(1.0, ge=0)
    """Factor of the mean divergence from the prior, beside 1/n. Without that 1/n the posterior collapses."""

    start_variance: float = Field(0.01, gt=0)
    """v₀ of ln v = ln v₀ + S^mX·W_v. The paper has no v₀, which is 1: more noise than signal for hundreds of steps."""

    def capabilities(self) -> Capabilities:
        """Return needs and limits under these options."""
        return Capabilities(
            tasks=frozenset({"markets"}),
            tasks_reason="shares encoders and summaries of items",
            private_layers="head",
            shared_head=frozenset({"kappa"} if self.exchange == "kappa" else ()),
            own_model="trained",
            sum_only=True,
        )

    def check(self, task: "TaskOptions", model: "ModelVariant") -> None:
        """Accept the options of the task."""
        if model == "paper" and getattr(task, "network", "") != "sgc":
            raise ValueError("pfgnn shares encoders of SGC; say tasks.markets.network=sgc, or another method")


METHOD = MethodSpec(
    PFGNN,
    "Cross-market recommendation with shared encoders and graph summaries",
    paper="algorithms.md §5",
    default_task="markets",
)
