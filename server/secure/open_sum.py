"""Opening of one sum: a state machine whose steps may be interrupted and repeated."""

from collections.abc import Mapping

import numpy as np

from common.errors import QuorumError, RefusedError
from common.secure.cards import HelperRoster
from common.secure.masking import Unsigned, dtype_of
from common.secure.quantise import LARGEST, centre, fixed_scale
from common.secure.terms import SumTerms
from common.wire.messages import Payload
from common.wire.sums import OPEN, PREPARE, OpenReply, OpenRequest, PrepareReply, PrepareRequest
from server.secure.helper_exchange import HelperExchange, ReplyT
from server.secure.store import FixedSum, SumStore
from server.secure.uploads import Upload

REPEATS = 5
"""Number of times that a helper may forget its boxes while one sum is opened."""

DEVIATIONS = 9
"""Standard deviations within which all noise lies; a larger sum is not of its clients."""


class SumLostError(RefusedError):
    """Sum that will never be opened; the next round has another number."""


class TooFewUploadsError(QuorumError):
    """Fewer usable uploads than a sum needs."""


class Opening:
    """Opening of the sum of one round and channel.

    Args:
        terms: Terms of the sum.
        roster: Helpers of the run.
        exchange: Exchange with them.
        store: Files of the sum.
    """

    def __init__(self, terms: SumTerms, roster: HelperRoster, exchange: HelperExchange, store: SumStore) -> None:
        self.terms, self._roster, self._exchange, self._store = terms, roster, exchange, store

    def close(self, uploads: Mapping[str, Upload], failed: Mapping[str, str]) -> tuple[FixedSum, dict[str, str]]:
        """Return the sum over clients whose boxes all helpers open, and client -> reason for the others.

        From its return on the set is final. `failed` names clients without a usable upload, for the error.

        Raises:
            QuorumError: Fewer clients than a sum needs, or a helper does not answer.
            SumLostError: A helper refuses.
        """
        self._require(len(uploads), failed)
        rejected = self._prepare({name: upload.boxes for name, upload in uploads.items()}) if uploads else {}
        chosen = {name: upload for name, upload in sorted(uploads.items()) if name not in rejected}
        self._require(len(chosen), {**failed, **rejected})
        total: Unsigned = np.zeros(self.terms.size, dtype_of(self.terms.bits))
        for upload in chosen.values():
            total += upload.load()["sum"]
        boxes = {name: upload.boxes for name, upload in chosen.items()}
        steps = {name: upload.steps for name, upload in chosen.items() if upload.steps}
        fixed = FixedSum(self.terms, boxes, steps, total)
        self._store.fix(fixed)
        return fixed, rejected

    def open(self, fixed: FixedSum) -> Unsigned:
        """Return the sum of the clients' integers and of the helpers' noise, mod 2ᵏ.

        Raises:
            QuorumError: A helper does not answer.
            SumLostError: A helper refuses, or the sum is not of its clients.
        """
        answers = self._store.answers(self.terms, len(self._roster.cards))
        total = fixed.total.copy()
        for answer in (answers | self._ask(fixed, answers)).values():
            total -= answer
        numbers = centre(total)
        if max(int(numbers.max()), -int(numbers.min())) > self._largest(len(fixed.boxes)):
            raise SumLostError(f"round {self.terms.round}: the sum is beyond what its clients can make together")
        return total

    def _prepare(self, boxes: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
        """Let the helpers open the boxes; return client -> reason for boxes that do not open."""
        names, text = sorted(boxes), self.terms.to_json()
        requests = {
            helper: PrepareRequest(text, names, [boxes[name][k] for name in names])
            for k, helper in enumerate(self._roster.names)
        }
        rejected: dict[str, str] = {}
        for helper, reply in self._answers(requests, PREPARE, PrepareReply).items():
            self._check_place(helper, reply.round, reply.channel)
            rejected |= {name: f"helper '{helper}' cannot open its box" for name in reply.bad if name in boxes}
        return rejected

    def _ask(self, fixed: FixedSum, stored: Mapping[int, Unsigned]) -> dict[int, Unsigned]:
        """Return the answers of the helpers that have none yet, and store them."""
        places = {name: k for k, name in enumerate(self._roster.names) if k not in stored}
        request = OpenRequest(self.terms.to_json(), fixed.clients)
        answers: dict[int, Unsigned] = {}
        for _ in range(REPEATS):
            waiting = {name: request for name, k in places.items() if k not in answers}
            if not waiting:
                return answers
            replies = self._answers(waiting, OPEN, OpenReply)
            for name, reply in replies.items():
                if not reply.missing:
                    answers[places[name]] = self._accept(name, reply)
                    self._store.write_answer(self.terms, places[name], answers[places[name]])
            if any(reply.missing for reply in replies.values()) and self._prepare(fixed.boxes):
                raise SumLostError(f"round {self.terms.round}: a helper cannot open the boxes any more")
        if len(answers) < len(places):
            raise SumLostError(f"round {self.terms.round}: a helper forgets the boxes it has opened")
        return answers

    def _accept(self, helper: str, reply: OpenReply) -> Unsigned:
        self._check_place(helper, reply.round, reply.channel)
        numbers = reply.opened.get("sum")
        if numbers is None or numbers.dtype != dtype_of(self.terms.bits) or numbers.shape != (self.terms.size,):
            raise SumLostError(f"round {self.terms.round}: helper '{helper}' sent numbers of another size")
        return numbers

    def _check_place(self, helper: str, round_: int, channel: str) -> None:
        if (round_, channel) != (self.terms.round, self.terms.channel):
            raise SumLostError(f"round {self.terms.round}: helper '{helper}' answers for round {round_}, {channel}")

    def _answers(self, requests: Mapping[str, Payload], kind: str, reply: type[ReplyT]) -> dict[str, ReplyT]:
        try:
            return self._exchange.ask(requests, kind, reply)
        except RefusedError as error:
            raise SumLostError(f"round {self.terms.round}: {error}") from None

    def _largest(self, clients: int) -> int:
        """Return the largest magnitude of a number in a sum of so many clients."""
        if not self.terms.has_noise:
            return int(clients * LARGEST * fixed_scale(self.terms.most))
        return clients * self.terms.bound + DEVIATIONS * len(self._roster.cards) * self.terms.noise

    def _require(self, usable: int, rejected: Mapping[str, str]) -> None:
        if usable < self.terms.min_sum:
            reasons = "".join(f"; {name}: {reason}" for name, reason in sorted(rejected.items()))
            raise TooFewUploadsError(
                f"round {self.terms.round}: {usable} usable uploads, {self.terms.min_sum} needed for a sum{reasons}"
            )
