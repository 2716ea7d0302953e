"""Terms of a secure sum that a client accepts, checked before anything is computed."""

from collections.abc import Callable
from dataclasses import dataclass

from common.arrays import Arrays
from common.errors import RefusedError
from common.secure.cards import HelperRoster
from common.secure.layout import SumLayout
from common.secure.quantise import integer_clip, noise_scale
from common.secure.terms import Sign, SumTerms


@dataclass(frozen=True)
class ExpectedSum:
    """Sum that a client is ready to join.

    Args:
        run: Name of the run.
        round: Number of the round.
        channel: Channel of the sum.
        roster: Helpers of the run.
        min_sum: Minimum number of clients that the owner's policy requires.
        template: Arrays of the names, shapes and dtypes of the client's own vector.
        rho: Cost ρ of the request; 0 without noise.
        clip: Clip norm C, with noise.
        sign: `positive` if no number is negative.
    """

    run: str
    round: int
    channel: str
    roster: HelperRoster
    min_sum: int
    template: Arrays
    rho: float = 0.0
    clip: float = 0.0
    sign: Sign = "signed"

    def accept(self, text: str) -> SumTerms:
        """Return the terms of a request.

        Raises:
            WireError: The terms are malformed.
            RefusedError: There are no terms, or they are not those of this sum; names the field.
        """
        if not text:
            raise RefusedError("this run announces secure sums, and the request has no terms of one")
        terms = SumTerms.from_json(text)
        for field, holds in _CHECKS.items():
            if not holds(self, terms):
                raise RefusedError(
                    f"terms of the secure sum: {field} is not what this client requires; nothing was sent"
                )
        return terms


def _has_noise(expected: ExpectedSum, terms: SumTerms) -> bool:
    """Return True if the noise is that of the cost: none without a cost."""
    if not expected.rho:
        return not terms.has_noise
    return terms.noise >= noise_scale(expected.rho, integer_clip(terms.size), expected.sign)


_CHECKS: dict[str, Callable[[ExpectedSum, SumTerms], bool]] = {
    "run": lambda expected, terms: terms.run == expected.run,
    "round": lambda expected, terms: terms.round == expected.round,
    "channel": lambda expected, terms: terms.channel == expected.channel,
    "roster": lambda expected, terms: terms.roster == expected.roster.digest,
    "layout": lambda expected, terms: terms.layout == SumLayout.of(expected.template).blocks,
    "rho": lambda expected, terms: terms.rho == expected.rho,
    "noise": _has_noise,
    "sign": lambda expected, terms: terms.sign == expected.sign,
    "bound": lambda expected, terms: not terms.has_noise or terms.bound == integer_clip(terms.size),
    "clip": lambda expected, terms: not terms.has_noise or terms.clip == expected.clip,
    "min_sum": lambda expected, terms: terms.min_sum >= expected.min_sum,
}
