"""Server step from a secure sum of the clients' updates."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from flwr.app import Message

from common.arrays import Arrays, add_prefix, all_finite
from common.secure.clusters import WEIGHT
from common.secure.layout import SumLayout
from common.wire.messages import LOCAL
from server.aggregation.round_results import Opened
from server.secure.helper_sums import bounded
from server.secure.open_sum import SumLostError
from server.secure.protocol import Release, Total
from server.secure.summed_counts import CHANNEL as COUNTS_CHANNEL
from server.state import RunState, Trained
from server.strategies.spec import RoundParts
from server.strategies.summed_intake import SummedIntake

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

    @property
    def terms(self) -> str:
        """Terms of the round's sum; empty without secure sums."""
        return self._terms.to_json() if self._terms else ""

    def announce(self, clients: list[str]) -> list[str]:
        """Fix the terms of the next round's sum over these clients; return those that it admits."""
        self.paying = clients
        if self._sums is not None:
            privacy = self.config.privacy
            release = Release(self.cost, self.clip * privacy.clip) if privacy.unit == "client" else Release()
            number = self.state.round + 1
            most = len(self.enrolment.roster.clients)
            self._terms = self._sums.terms(number, CHANNEL, self._blocks(), most, release)
            self.paying = self._sums.admit(self._terms, clients)
        return self.paying

    @property
    def has_pending_sum(self) -> bool:
        """True if the clients of the next round's sum are final, and it is still to be opened."""
        return self._sums is not None and self._sums.pending(self.state.round + 1, CHANNEL) is not None

    def resume_sum(self) -> bool:
        """Return True if clients are not asked: the next round's sum is still to be opened, or is lost."""
        if self._sums and self._sums.is_renewed:
            self.announce([])
            return True
        pending = self._sums.pending(self.state.round + 1, CHANNEL) if self._sums else None
        if pending is None:
            return False
        self._terms, self.paying = pending.terms, pending.clients
        return True

    def step_from_sum(self, messages: Iterable[Message]) -> bool:
        """Make the server step from the sum of a round; return False without secure sums.

        A sum that is lost leaves the model unchanged.

        Raises:
            QuorumError: Too few uploads, or a helper does not answer.
        """
        sums, terms = self._sums, self._terms
        if sums is None or terms is None:
            return False
        uploads, rejected = self._split_uploads(sums, terms, messages)
        before, self._before, self._replies, self.row_ids = self.state, self.state, [], []
        try:
            total = sums.total(terms, uploads, rejected)
            state = self._state_after(total)
            rejected |= total.rejected
            numbers = self.diagnostics(state.memory)
        except SumLostError as lost:
            state, numbers = replace(before, round=terms.round), {"lost": 1.0}
            rejected |= dict.fromkeys(uploads, str(lost))
        self.state = state
        self._trained = Trained(self.state, float("nan"), rejected, numbers, self.groups())
        self._on_trained(self._trained)
        sums.forget(terms.round, CHANNEL, COUNTS_CHANNEL)
        return True

    def _state_after(self, total: Total) -> RunState:
        opened = self._open(total)
        shared = {name: a for name, a in self.state.model.items() if not self.task.is_client_only(name)}
        with np.errstate(over="ignore", invalid="ignore"):
            updated, memory = self.update(self.state.memory, shared, opened)
        state = self.state.next({**self.state.model, **updated}, memory, opened.names)
        if not all_finite(state.model) or not all(map(all_finite, memory.values())):
            raise SumLostError(f"round {state.round}: the step from the sum is not finite")
        self._bad_boxes.update(total.rejected.keys())
        spoilt = [name for name in total.rejected if self._bad_boxes[name] >= BAD_BOXES]
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
