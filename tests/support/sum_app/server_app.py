"""A ServerApp that opens sums with two helpers; a file `again` in its folder lets it go on after the first."""

import json
import time
from pathlib import Path
from typing import TypeVar

import numpy as np
from flwr.app import Context, Message
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from common.secure.cards import HelperRoster
from common.secure.terms import SumTerms
from common.wire.codec import decode, encode
from common.wire.messages import (
    HELPER,
    OPEN,
    PREPARE,
    HelperReply,
    HelperRequest,
    OpenReply,
    OpenRequest,
    Payload,
    PrepareReply,
    PrepareRequest,
)
from server.exchange.door import connect
from server.exchange.grid import PollingGrid, RoundLimits
from server.exchange.relays import HubGrid
from tests.support.desks import CLIENTS, Upload, open_sum, prepare, total
from tests.support.helpers import EXACT, members, terms

SIZE, RUN = 1_000, "toy"

app, nobody = ServerApp(), ClientApp()

P = TypeVar("P")


class DistantDesk:
    """Desk of a helper behind a SuperLink."""

    def __init__(self, grid: Grid, node: int) -> None:
        self.grid, self.node = grid, node

    def card(self, request: HelperRequest) -> HelperReply:
        return self._ask(HELPER, request, HelperReply)

    def prepare(self, request: PrepareRequest) -> PrepareReply:
        return self._ask(PREPARE, request, PrepareReply)

    def open(self, request: OpenRequest) -> OpenReply:
        return self._ask(OPEN, request, OpenReply)

    def _ask(self, kind: str, request: Payload, answer: type[P]) -> P:
        limits = RoundLimits(min_replies=1, deadline=60.0, patience=60.0)
        [reply] = PollingGrid(self.grid, limits).send_and_receive([Message(encode(request), self.node, kind)])
        if reply.has_error():
            raise RuntimeError(reply.error.reason)
        return decode(answer, reply.content)


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Open a sum, wait, and ask for it again and for other sums; write what happened to `result.json`."""
    _open_sums(_desks(HubGrid(connect(grid, 60.0))), Path(str(context.run_config["folder"])))


def _open_sums(desks: list[DistantDesk], folder: Path) -> None:
    roster = _roster(desks)
    about = _terms(roster, **EXACT)
    vectors = [np.arange(SIZE) % 50 - 7 * n for n in range(4)]
    uploads = [Upload(f"client-{n}", vector, about, roster) for n, vector in enumerate(vectors)]
    bad = [prepare(desk, about, uploads, n).bad for n, desk in enumerate(desks)]
    first = [open_sum(desk, about, uploads[:3]) for desk in desks]
    (folder / "opened").touch()
    while not (folder / "again").exists():
        time.sleep(0.05)

    renewed = _roster(desks)
    noised = _terms(renewed, channel="evaluate")
    masked = [Upload(f"client-{n}", vector, noised, renewed) for n, vector in enumerate(vectors)]
    for n, desk in enumerate(desks):
        prepare(desk, noised, masked, n)
    noise = total(masked, [open_sum(desk, noised, masked) for desk in desks]) - sum(vectors)
    result = {
        "helpers": {card.name: card.fingerprint for card in roster.cards},
        "bad": bad,
        "exact": bool((total(uploads[:3], first) == sum(vectors[:3])).all()),
        "deviation": float(noise.std()) / noised.noise,
        "refusals": [_refusal(desk, about, uploads) for desk in desks],
    }
    (folder / "result.json").write_text(json.dumps(result))


def _roster(desks: list[DistantDesk]) -> HelperRoster:
    return HelperRoster.read([desk.card(HelperRequest(RUN, "{}")).card for desk in desks], RUN)


def _terms(roster: HelperRoster, **changed: object) -> SumTerms:
    about = {"size": SIZE, "layout": (("update", SIZE),), "roster": roster.digest, "keys": tuple(roster.to_json())}
    return terms(**{**about, "members": members(*CLIENTS).digest, **changed})


def _desks(grid: Grid) -> list[DistantDesk]:
    """Return both helpers in the order of their names."""
    while len(nodes := list(grid.get_node_ids())) < 2:
        time.sleep(0.05)
    desks = [DistantDesk(grid, node) for node in nodes]
    return sorted(desks, key=lambda desk: str(json.loads(desk.card(HelperRequest(RUN, "{}")).card)["name"]))


def _refusal(desk: DistantDesk, about: object, uploads: list[Upload]) -> str:
    try:
        open_sum(desk, about, uploads)
    except RuntimeError as error:
        return str(error)
    return ""
