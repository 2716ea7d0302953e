"""`[privacy]`: the noise that clients are asked to add; a client's own policy and ledger have the last word."""

from typing import Literal

from pydantic import Field

from common.options import Options

Unit = Literal["none", "client", "record"]
Mechanism = Literal["gaussian", "laplace", "privunit"]

LEAST_CLIP = 1e-6
"""Far above the gradients whose squares float32 rounds to nothing, and which therefore pass a clip as they are."""

BEYOND_RECORDS = {
    "perfedavg": "takes several gradients a step, of which privacy.unit=record counts one",
    "ifca": "asks which cluster's loss is least, which privacy.unit=record does not cover",
}
"""Methods that ask for more than DP-SGD hides, and what."""


class PrivacyOptions(Options):
    """What a run promises its clients."""

    unit: Unit = "none"
    """Whose data noise hides. `client`: everything a client sends is one clipped, noised vector (local DP, replace-one);
    `record`: a client's update changes little with any one of its records (DP-SGD, add-or-remove-one)."""

    mechanism: Mechanism = "gaussian"
    """Of unit `client`. `gaussian`: L2 clip, zCDP; `laplace`: L1 clip, pure ε; `privunit`: direction only, pure ε."""

    epsilon: float = Field(10.0, gt=0, allow_inf_nan=False)
    """ε of the whole run, for every client."""

    delta: float = Field(1e-5, gt=0, lt=1)
    """δ that goes with ε; pure mechanisms need none."""

    clip: float = Field(1.0, ge=LEAST_CLIP, allow_inf_nan=False)
    """C, the largest norm of a client's whole upload (unit `client`) or of a record's gradient (unit `record`)."""

    normalise: bool = False
    """Scale every upload to norm C, also shorter ones; `privunit` always does."""

    sample: float = Field(0.5, gt=0, le=1)
    """Unit `record`: the probability q with which a record takes part in a local step (Poisson sampling)."""

    def check_records(self, method: str) -> None:
        """Accept unit `record` for the method, and the mechanism for unit `record`.

        Raises:
            ValueError: DP-SGD does not hide records there.
        """
        if self.unit != "record":
            return
        if method in BEYOND_RECORDS:
            raise ValueError(f"{method} {BEYOND_RECORDS[method]}; say privacy.unit=client")
        if self.mechanism != "gaussian":
            raise ValueError(f"DP-SGD adds Gaussian noise; mechanism={self.mechanism} is for unit=client")
