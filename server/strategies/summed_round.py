"""Server step from a secure sum of the clients' updates."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain

import numpy as np
from flwr.app import Message

from common.arrays import Arrays, add_prefix, all_finite
from common.secure.clusters import WEIGHT
from common.secure.layout import SumLayout
from common.wire.messages import LOCAL
from server.aggregation.round_results import Opened
from server.secure.groups import FEWEST_GROUPS, median_of
from server.secure.helper_sums import bounded
from server.secure.open_sum import SumLostError, TooFewUploadsError
from server.secure.protocol import Release, SumProtocol, Total
from server.secure.store import FixedSum
from server.secure.summed_counts import CHANNEL as COUNTS_CHANNEL
from server.state import RunState, Trained
from server.strategies.spec import RoundParts
from server.strategies.summed_intake import SummedIntake, Uploads

CHANNEL = "train"
"""Channel of the sum of updates."""

BAD_BOXES = 3
"""Number of rounds with a box that does not open, after which a client is asked no more."""


class SummedStrategy(SummedIntake):
    """Base of strategies that step from single replies or, with a protocol of sums, from their sum."""

    def __init__(self, parts: RoundParts) -> None:
        super().__init__(parts)
        self._bad_boxes = Counter[str]()
        self.paying: list[str] = []
        """Clients that pay for the next round."""

    def terms_for(self, client: str) -> str:
        """Return the terms of a client's sum in this round; empty without secure sums."""
        return self._terms_of(client).to_json() if self._terms else ""

    def announce(self, clients: list[str]) -> list[str]:
        """Fix the terms of the next round's sums over these clients; return those that they admit."""
        self.paying, sums = clients, self._sums
        if sums is not None:
            privacy, number = self.config.privacy, self.state.round + 1
            release = Release(self.cost, self.clip * privacy.clip) if privacy.unit == "client" else Release()
            most, blocks = len(self.enrolment.roster.clients), self._blocks()
            self._group_of = sums.assign(number, clients)
            self._terms = [sums.terms(number, channel, blocks, most, release) for channel in self._channels]
            members = [[name for name in clients if self._group_of[name] == g] for g in range(len(self._terms))]
            admitted = (sums.admit(*one) for one in zip(self._terms, members, strict=True))
            self.paying = sorted(chain.from_iterable(admitted))
        return self.paying

    @property
    def has_pending_sum(self) -> bool:
        """True if the clients of one of the next round's sums are final, and it is still to be opened."""
        return any(self._pending())

    def resume_sum(self) -> bool:
        """Return True if clients are not asked: the next round's sums are still to be opened, or are lost."""
        if self._sums and self._sums.is_renewed:
            self.announce([])
            return True
        fixed = [one for one in self._pending() if one]
        if not fixed or len(fixed) < len(self._channels):
            return False
        self._terms, self.paying = [one.terms for one in fixed], [name for one in fixed for name in one.clients]
        self._group_of = {name: g for g, one in enumerate(fixed) for name in one.clients}
        return True

    def unasked(self, clients: list[str]) -> list[str]:
        """Return those of the admitted clients whose sum is not final yet."""
        final = [one is not None for one in self._pending()]
        return [name for name in clients if not (self._terms and final[self._group_of.get(name, 0)])]

    @property
    def _channels(self) -> list[str]:
        groups = self.config.secure_sums.groups
        return [f"{CHANNEL}/{g}" for g in range(groups)] if groups > 1 else [CHANNEL]

    def _pending(self) -> list[FixedSum | None]:
        sums, number = self._sums, self.state.round + 1
        return [sums.pending(number, channel) for channel in self._channels] if sums else []

    def step_from_sum(self, messages: Iterable[Message]) -> bool:
        """Make the server step from the sums of a round; return False without secure sums.

        A sum that is lost leaves the model unchanged.

        Raises:
            QuorumError: Too few uploads, or a helper does not answer.
        """
        sums = self._sums
        if sums is None or not self._terms:
            return False
        uploads, rejected = self._split_uploads(sums, messages)
        before, self._before, self._replies, self.row_ids = self.state, self.state, [], []
        number = before.round + 1
        try:
            state = self._state_after(self._means(sums, uploads, rejected), rejected)
            numbers = self.diagnostics(state.memory)
        except SumLostError as lost:
            state, numbers = replace(before, round=number), {"lost": 1.0}
            rejected |= dict.fromkeys(uploads, str(lost))
        self.state = state
        self._trained = Trained(self.state, float("nan"), rejected, numbers, self.groups())
        self._on_trained(self._trained)
        sums.forget(number, *self._channels, CHANNEL, COUNTS_CHANNEL)
        return True

    def _means(self, sums: SumProtocol, uploads: Uploads, rejected: dict[str, str]) -> list[Opened]:
        """Return the means of each group; add clients that are in none to `rejected`.

        Raises:
            QuorumError: Too few uploads for the only sum, or a helper does not answer.
            SumLostError: The only sum is lost, or fewer than `FEWEST_GROUPS` groups have one.
        """
        is_renewed, found, groups = sums.is_renewed, list[Opened](), len(self._terms)
        for g, terms in enumerate(self._terms):
            members = {name: one for name, one in uploads.items() if self._group_of.get(name, 0) == g}
            try:
                total = sums.total(terms, members, rejected)
                self._bad_boxes.update(total.rejected.keys())
                rejected |= total.rejected
                found.append(self._open(total))
            except (SumLostError, TooFewUploadsError) as failure:
                if is_renewed or groups == 1:
                    raise
                rejected |= dict.fromkeys(members, str(failure))
        if len(found) < min(FEWEST_GROUPS, groups):
            number = self.state.round + 1
            raise SumLostError(f"round {number}: {len(found)} of {groups} groups have a sum, {FEWEST_GROUPS} needed")
        return found

    def _state_after(self, groups: list[Opened], rejected: Mapping[str, str]) -> RunState:
        opened = median_of(groups)
        shared = {name: a for name, a in self.state.model.items() if not self.task.is_client_only(name)}
        with np.errstate(over="ignore", invalid="ignore"):
            updated, memory = self.update(self.state.memory, shared, opened)
        state = self.state.next({**self.state.model, **updated}, memory, opened.names)
        if not all_finite(state.model) or not all(map(all_finite, memory.values())):
            raise SumLostError(f"round {state.round}: the step from the sum is not finite")
        spoilt = [name for name in rejected if self._bad_boxes[name] >= BAD_BOXES]
        return replace(state, guard=state.guard.exclude(spoilt, self.config.rounds))

    def _open(self, total: Total) -> Opened:
        """Return the means over the clients of a sum."""
        blocks = self._blocks()
        weight = float(len(total.clients))
        if WEIGHT in blocks:
            weight = float(SumLayout.of(blocks).arrays(total.vector, blocks)[WEIGHT].item())
            if not weight > 0:
                raise SumLostError(f"round {self.state.round + 1}: the clients' weights sum to {weight:g}")
        mean = bounded(total.vector / weight, total.longest)
        steps = self.config.method_options.steps(LOCAL)
        arrays = SumLayout.of(blocks).arrays(mean, blocks)
        return Opened(total.clients, total.steps, arrays, steps, self.capabilities.per_step)

    def _blocks(self) -> Arrays:
        """Return a template of the vector that each client sends."""
        return self._blocks_of(self.model_for(""))

    def _blocks_of(self, model: Arrays) -> Arrays:
        """Return a template of the vector of a client that trains a model."""
        shared = self.select_uploaded(model)
        arrays = add_prefix("update", shared)
        if self.capabilities.needs_gradient:
            arrays |= add_prefix("gradient", shared)
        if self.capabilities.needs_magnitude:
            arrays |= add_prefix("absolute", shared)
        if self.cost == 0 and self.config.method_options.weighting == "examples":
            arrays[WEIGHT] = np.zeros(1)
        return arrays
