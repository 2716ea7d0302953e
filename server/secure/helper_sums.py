"""Secure sums that helpers open."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from common.arrays import Arrays, Floats
from common.config.run import RunConfig
from common.errors import ConfigError, RefusedError
from common.secure.cards import HelperRoster
from common.secure.layout import SumLayout
from common.secure.quantise import decode, integer_clip, noise_scale
from common.secure.terms import MOST_CLIENTS, SumTerms
from common.wire.sums import SumReply
from server.secure.groups import assign
from server.secure.helper_exchange import HelperExchange
from server.secure.open_sum import DEVIATIONS, Opening, SumLostError
from server.secure.protocol import Release, Total
from server.secure.store import FixedSum, SumStore
from server.secure.uploads import Upload, check_upload, limit_upload
from server.spool import Spool
from server.sum_event import Sum

NORM_SLACK = 1.1
"""Factor on the expected norm of the noise, in the bound on a mean."""

PAID_CHANNELS = ("train", "counts")
"""Channels whose next sum clients may have paid for under the helpers that were replaced."""

MOST_BY_DEFAULT = 64
"""Smallest `most` of terms; a few clients more or less then leave the terms of a round as they were."""


class HelperSums:
    """Sums that helpers open, with noise of each helper.

    Args:
        config: Configuration of the run.
        roster: Helpers of the run.
        exchange: Exchange with them.
        store: Files of the sums.
        on_sum: Callback of every sum, opened or lost.
        is_renewed: True if the helpers were replaced, and the next round is lost.
    """

    def __init__(
        self,
        config: RunConfig,
        roster: HelperRoster,
        exchange: HelperExchange,
        store: SumStore,
        on_sum: Callable[[Sum], None] = lambda sum_: None,
        *,
        is_renewed: bool = False,
    ) -> None:
        self._config, self._roster, self._exchange, self._store = config, roster, exchange, store
        self._on_sum, self.is_renewed = on_sum, is_renewed

    def terms(self, number: int, channel: str, template: Arrays, most: int, release: Release) -> SumTerms:
        """Return the terms of a sum over at most so many clients."""
        layout = SumLayout.of(template)
        has_noise, minimum = release.rho > 0, self._config.secure_sums.min_sum
        bound = integer_clip(layout.size) if has_noise else 0
        noise = self._noise(release, bound, layout.size) if has_noise else 0
        terms = SumTerms(
            run=self._config.run_id,
            round=number,
            channel=channel,
            size=layout.size,
            bits=32 if has_noise else 64,
            bound=bound,
            clip=release.clip if has_noise else 0.0,
            sign=release.sign,
            rho=release.rho,
            noise=noise,
            most=min(max(1 << (most - 1).bit_length(), minimum, MOST_BY_DEFAULT), MOST_CLIENTS),
            min_sum=minimum,
            layout=layout.blocks,
            roster=self._roster.digest,
        )
        self._require_room(terms)
        announced, _ = self._store.announced(number, channel)
        return announced if announced and replace(announced, most=terms.most) == terms else terms

    def admit(self, terms: SumTerms, clients: Sequence[str]) -> list[str]:
        """Return the clients that are asked, at most as many as the terms allow; earlier ones come first."""
        if not terms.has_noise and self._config.privacy.unit == "none":  # who is asked again pays nothing
            return sorted(clients)
        announced, earlier = self._store.announced(terms.round, terms.channel)
        earlier = earlier if announced == terms else []
        admitted = sorted(clients, key=lambda name: (name not in earlier, name))[: terms.most]
        self._store.announce(terms, sorted({*earlier, *admitted}))
        return sorted(admitted)

    def assign(self, number: int, clients: Sequence[str]) -> dict[str, int]:
        """Return client -> group for a round; who was asked before stays in its group."""
        groups = self._config.secure_sums.groups
        if groups == 1:
            return dict.fromkeys(clients, 0)
        found = assign(clients, groups, self._config.seed, number, self._store.groups(number))
        self._store.write_groups(number, found)
        return found

    def pending(self, number: int, channel: str) -> FixedSum | None:
        """Return the sum whose set of clients was final when the server stopped."""
        found = self._store.find(number, channel)
        return found if found and found.terms.roster == self._roster.digest else None

    def limit(self, terms: SumTerms) -> int:
        """Return the largest size of an upload in bytes."""
        return limit_upload(terms, len(self._roster.cards))

    def upload(self, reply: SumReply, terms: SumTerms) -> Upload:
        """Return the upload of a reply."""
        return check_upload(reply, terms, len(self._roster.cards))

    def total(self, terms: SumTerms, uploads: Mapping[str, Upload], failed: Mapping[str, str]) -> Total:
        """Return the sum over the uploads, or over those of the pending sum."""
        start, rejected = time.monotonic(), dict[str, str]()
        self._exchange.exchanges.clear()
        fixed = self.pending(terms.round, terms.channel)
        if self.is_renewed and terms.channel.partition("/")[0] in PAID_CHANNELS:
            self.is_renewed = False
            raise self._lose(terms, {}, start, SumLostError(f"round {terms.round}: the run's helpers were replaced"))
        opening = Opening(fixed.terms if fixed else terms, self._roster, self._exchange, self._store)
        try:
            if fixed is None:
                fixed, rejected = opening.close(uploads, failed)
            vector = decode(opening.open(fixed), fixed.terms)
        except SumLostError as lost:
            raise self._lose(terms, rejected, start, lost) from None
        self._record(terms, len(fixed.boxes), rejected, start)
        return Total(vector, fixed.clients, fixed.steps, self._longest(fixed), self._spread(fixed), rejected)

    def spool(self) -> Spool:
        """Return a store of the uploads of one sum until it is opened."""
        return self._store.spool()

    def next_number(self, channel: str) -> int:
        """Return a number that no sum of the channel had."""
        return self._store.next_number(channel)

    def forget(self, number: int, *channels: str) -> None:
        """Remove the files of the channels' sums up to a round."""
        self._store.clear(number, *channels)

    def _lose(self, terms: SumTerms, rejected: Mapping[str, str], start: float, lost: SumLostError) -> SumLostError:
        """Record a lost sum and remove its files."""
        self._record(terms, 0, rejected, start, str(lost))
        self._store.clear(terms.round, terms.channel)
        return lost

    def _noise(self, release: Release, bound: int, size: int) -> int:
        try:
            return noise_scale(release.rho, bound, release.sign)
        except RefusedError as error:
            raise ConfigError(f"a secure sum of {size:,} numbers is not possible: {error}") from None

    def _require_room(self, terms: SumTerms) -> None:
        """Check that no sum of the terms can exceed the range of its integers."""
        room = (1 << (terms.bits - 1)) - DEVIATIONS * len(self._roster.cards) * terms.noise
        if terms.has_noise and terms.most * terms.bound >= room:
            raise ConfigError(
                f"a secure sum of {terms.most:,} clients and {terms.size:,} numbers at ρ = {terms.rho:.3g} exceeds"
                f" 32 bits; at most {max(room // terms.bound - 1, 0):,} clients fit"
            )

    def _longest(self, fixed: FixedSum) -> float:
        terms, clients = fixed.terms, len(fixed.boxes)
        if not terms.has_noise:
            return math.inf
        return terms.clip + NORM_SLACK * self._spread(fixed) * math.sqrt(terms.size) / clients

    def _spread(self, fixed: FixedSum) -> float:
        """Return the standard deviation of the noise of all helpers on a number, in the clients' units."""
        terms = fixed.terms
        return terms.noise * math.sqrt(len(self._roster.cards)) * terms.clip / terms.bound if terms.has_noise else 0.0

    def _record(self, terms: SumTerms, clients: int, rejected: Mapping[str, str], start: float, lost: str = "") -> None:
        exchanges = self._exchange.exchanges
        self._on_sum(
            Sum(
                round=terms.round,
                channel=terms.channel,
                clients=clients,
                rejected=dict(rejected),
                seconds=time.monotonic() - start,
                bytes=sum(one.bytes_down + one.bytes_up for one in exchanges),
                lost=lost,
            )
        )


def bounded(vector: Floats, longest: float) -> Floats:
    """Return a mean, scaled down to the largest norm that it can have."""
    norm = float(np.linalg.norm(vector))
    return vector * (longest / norm) if norm > longest else vector
