"""What a run may claim of privacy, in words that its clients' ledgers keep."""

from collections.abc import Mapping

from common.config import RunConfig
from common.privacy.accounts import build_account
from common.privacy.claims import NEIGHBOURS
from server.events import Privacy

UNPROTECTED = Privacy(
    unit="none",
    mechanism="none: model updates leave clients unclipped and without noise; data stay, what updates reveal is not bounded",
    epsilon_spent_max=None,
    delta=None,
    uncovered=[
        "model updates",
        "training losses",
        "parameters of inferred properties",
        "metrics",
        "numbers of records",
        "who takes part and when",
    ],
)
"""What is claimed of a run without differential privacy: nothing."""

UNCOVERED = ("who takes part and when", "requests that fail", "rounding of the noise to floating point", "tuning")
"""Channels that no noise here covers."""

RELEASES = {
    "gaussian": "Gaussian noise on all that a client sends, as one vector of Euclidean norm at most {clip:g}",
    "laplace": "Laplace noise on all that a client sends, as one vector of absolute sum at most {clip:g}",
    "privunit": "PrivUnitG on the direction of all that a client sends, as one vector",
}


def statement(config: RunConfig, spent: Mapping[str, float], sharing: int) -> Privacy:
    """The run's statement.

    Args:
        config: The run.
        spent: Client -> what it was asked to spend, in the unit of the run's account.
        sharing: Clients whose metrics left them.
    """
    options = config.privacy
    if options.unit == "none":
        return UNPROTECTED
    account = build_account(options)
    sampled = (
        "Gaussian noise on sums of gradients of norm at most {clip:g}, of records drawn with probability {sample:g}"
    )
    how = (sampled if options.unit == "record" else RELEASES[options.mechanism]).format(**options.model_dump())
    promise = f"ε = {options.epsilon:g}" + (f", δ = {options.delta:g}" if account.name != "pure" else "")
    most = max(spent.values(), default=0.0)
    metrics = [f"metrics of the {sharing} clients whose owners share them"] if sharing else []
    return Privacy(
        unit=options.unit,
        mechanism=f"{how}; {NEIGHBOURS[options.unit]}; each client's ledger stops at {promise}, whatever is asked ({account.name})",
        epsilon_spent_max=account.claim(most, options.delta) if most else 0.0,
        delta=None if account.name == "pure" else options.delta,
        uncovered=[*metrics, *UNCOVERED],
    )
