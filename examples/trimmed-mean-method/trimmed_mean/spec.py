"""Options of the trimmed mean (Yin et al. 2018, arXiv 1803.01498)."""

from typing import ClassVar

from pydantic import Field

from common.api import MethodOptions, MethodSpec


class TrimmedMean(MethodOptions):
    """θ ← θ − trimmed mean of Δ_k, coordinate by coordinate (Definition 2)."""

    name: ClassVar[str] = "trimmedmean"

    beta: float = Field(0.1, ge=0, lt=0.5)
    """β, share of the values left out at each end."""


METHOD = MethodSpec(TrimmedMean, "Average updates without the extreme values of each coordinate", "arXiv 1803.01498")
