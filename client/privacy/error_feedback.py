"""Error feedback: what encoding leaves out of an update is added to the next one.

A client adds e to its update x, sends q(x + e) and keeps e ← x + e − q(x + e). As the server may lose or leave out a reply,
e counts from the last round that it aggregated.
"""

from dataclasses import dataclass, replace

import numpy as np
from safetensors.numpy import load, save

from client.privacy.transforms import Encode, Released
from client.training.client_state import receive
from client.training.participant import Participant
from common.arrays import Arrays, add_prefix, group, sub
from common.wire.form import Form
from common.wire.messages import LOCAL

LEFT_OUT = "left-out.safetensors"
"""Name of the document with e before and after the last round."""

ROUND = "round"


@dataclass(frozen=True)
class FeedBack:
    """Encode step: add what earlier rounds left out, encode, and keep what this round leaves out.

    Args:
        participant: The client in this round.
        form: Form of the numbers.
        encode: Steps that bring the sum into that form.
    """

    participant: Participant
    form: Form
    encode: tuple[Encode, ...]

    def __call__(self, released: Released) -> Released:
        """Return the encoded values; a repeated request gets identical ones."""
        request = self.participant.request
        if request.phase != LOCAL:
            return self._encode(released)
        before = self._left_out()
        whole = {name: a + before[name] if name in before else a for name, a in released.arrays.items()}
        sent = self._encode(replace(released, arrays=whole))
        after = sub(whole, receive(sent, self.form, request.model))
        kept = {**add_prefix("before", before), **add_prefix("after", after), ROUND: np.array(request.round)}
        self.participant.store.write(self.participant.run, LEFT_OUT, save(kept))
        return sent

    def _encode(self, released: Released) -> Released:
        for step in self.encode:
            released = step(released)
        return released

    def _left_out(self) -> Arrays:
        """Return e at the start of this round; empty before the first."""
        stored = load(self.participant.store.read(self.participant.run, LEFT_OUT) or save({}))
        is_counted = ROUND in stored and int(stored[ROUND]) == self.participant.request.shared_round
        return group("after" if is_counted else "before", stored)
