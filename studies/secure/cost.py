"""Cost of one secure sum with noise, in one process and without a network.

Every sum is compared with the sum of the clients' integers and both helpers' noise, number by number.
"""

import base64
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from cryptography.hazmat.primitives.asymmetric import ec

from client.secure.helper.helper_service import HelperService
from common.arrays import Array, Floats, Ints
from common.privacy.accounts import gdp_of
from common.secure.cards import HelperRoster, NodeCard
from common.secure.masking import MASKED, Unsigned, box_context, seal, total_mask
from common.secure.members import MemberList, simulated_key
from common.secure.noise import Stream, discrete_gaussian
from common.secure.norms import commitment, holds, mask_bounded
from common.secure.quantisation import centre, decode, integer_clip, noise_scale, quantise
from common.secure.terms import NOISED_BITS, SumTerms
from common.wire.messages import HelperRequest, OpenRequest, PrepareRequest

HELPERS, MOST, BATCH = 2, 1_024, 16
EPSILON, DELTA, ROUNDS = 1.0, 1e-5, 100
RUN = "cost"


@dataclass(frozen=True)
class Case:
    """Sum to measure.

    Args:
        clients: Number of clients that upload or vanish.
        numbers: Size of a vector.
        lost: Share of the clients that vanish.
    """

    clients: int
    numbers: int
    lost: float

    @property
    def survivors(self) -> int:
        """Number of clients in the sum."""
        return round(self.clients * (1 - self.lost))


PARTIES = ((8, 0.1), (64, 0.3), (1_000, 0.1), (1_000, 0.3))
"""Numbers of clients, each with the share that is lost."""

CASES = tuple(Case(clients, 10**power, lost) for power in (4, 5, 6) for clients, lost in PARTIES)


@dataclass
class Clock:
    """Processor seconds by name of the work."""

    seconds: dict[str, list[float]] = field(default_factory=dict)

    @contextmanager
    def time(self, work: str) -> Iterator[None]:
        """Add the processor seconds of the block."""
        start = time.process_time()
        yield
        self.seconds.setdefault(work, []).append(time.process_time() - start)


class Federation:
    """Two helpers, and the server's running sums.

    Args:
        case: Sum to measure.
    """

    def __init__(self, case: Case) -> None:
        self.case, self.clock = case, Clock()
        keys = [bytes([number]) * 32 for number in range(HELPERS)]
        self.desks = [_desk(number, key) for number, key in enumerate(keys)]
        self.noise_keys = keys
        self.roster = HelperRoster.read([desk.card(HelperRequest(RUN, "{}")).card for desk in self.desks], RUN)
        self.keys = {name: simulated_key(name) for name in (f"client-{n:06}" for n in range(case.clients))}
        members = MemberList(tuple(key.member(name, RUN) for name, key in self.keys.items()))
        self.members = [one.line for one in members.members]
        self.terms = _terms(case.numbers, self.roster, members.digest)
        self.total: Array = np.zeros(case.numbers, MASKED)
        self.exact = np.zeros(case.numbers, np.int64)
        self.boxes: dict[str, list[str]] = {}
        self.commitments: dict[str, str] = {}
        self.waiting: dict[str, tuple[Unsigned, bytes]] = {}
        self.bytes = 0

    def upload(self, number: int, vector: Floats, generator: np.random.Generator) -> None:
        """Add one client's masked vector."""
        client, terms = f"client-{number:06}", self.terms
        with self.clock.time("quantise"):
            numbers = quantise(vector, terms.clip, terms.bound, terms.sign, generator)
        seeds = [generator.bytes(32) for _ in self.desks]
        with self.clock.time("prove"):
            masked, proof = mask_bounded(numbers, terms.bound, seeds)
            bound_by = commitment(masked, proof, HELPERS)
        with self.clock.time("mask"):  # as an upload without a proof
            plain = numbers.astype(self.total.dtype) + total_mask(seeds, terms.size, terms.bits)
            pairs = zip(seeds, self.roster.cards, strict=True)
            sealed = [self.seal(client, seed, bound_by, card) for seed, card in pairs]
        if not (plain == masked).all():
            raise AssertionError("a proof changes what is masked")
        self.waiting[client] = masked, proof
        self.boxes[client], self.commitments[client] = sealed, bound_by
        if len(self.waiting) == BATCH:
            self.fold()
        self.exact += numbers
        self.bytes = masked.nbytes + sum(map(len, sealed)) + len(proof)

    def fold(self) -> None:
        """Check the waiting vectors, and add them to the server's sum."""
        if not self.waiting:
            return
        names, text, shares = sorted(self.waiting), self.terms.to_json(), list[Array]()
        commitments = [self.commitments[name] for name in names]
        for place, desk in enumerate(self.desks):
            boxes = [self.boxes[name][place] for name in names]
            with self.clock.time("helper"):
                reply = desk.prepare(PrepareRequest(text, names, boxes, self.members, commitments))
            shares.append(reply.shares["shares"])
        for row, name in enumerate(names):
            masked, proof = self.waiting[name]
            with self.clock.time("verify"):
                verdict = holds(masked, proof, self.terms.bound, [one[row].tobytes() for one in shares])
            if not verdict:
                raise AssertionError(f"the proof of {name} fails")
            with self.clock.time("server"):
                self.total += masked
        self.waiting.clear()

    def open(self) -> Ints:
        """Return the sum that the server opens."""
        self.fold()
        for desk in self.desks:
            with self.clock.time("helper"):
                opened = desk.open(OpenRequest(self.terms.to_json(), sorted(self.boxes))).opened["sum"]
            with self.clock.time("server"):
                self.total -= opened
        with self.clock.time("server"):
            decode(self.total, self.terms)
        return centre(self.total)

    def seal(self, client: str, seed: bytes, bound_by: str, card: NodeCard) -> str:
        """Return a client's box for a helper, with a signed seed."""
        terms = self.terms
        context = box_context(terms.run, terms.round, terms.channel, client, card.name, terms.digest, terms.roster)
        return seal(
            seed + self.keys[client].sign(terms.run, context, seed + base64.b64decode(bound_by)), card.raw_key, context
        )

    def noise(self) -> Ints:
        """Return the noise of both helpers."""
        total = np.zeros(self.case.numbers, np.int64)
        for key in self.noise_keys:
            with self.clock.time("noise"):
                total += discrete_gaussian(self.terms.noise, self.case.numbers, Stream(key))
        return total


def measure(case: Case) -> dict[str, float]:
    """Return milliseconds of a client, seconds of server and helper, and bytes of an upload.

    Raises:
        AssertionError: The opened sum is not that of the integers and the noise.
    """
    federation, generator = Federation(case), np.random.default_rng(case.clients)
    for number in range(case.survivors):
        federation.upload(number, generator.standard_normal(case.numbers), generator)
    opened = federation.open()
    if not (opened == federation.exact + federation.noise()).all():
        raise AssertionError(f"{case}: the opened sum differs from integers and noise")
    seconds = federation.clock.seconds
    return {
        "quantise_ms": 1e3 * statistics.median(seconds["quantise"]),
        "mask_ms": 1e3 * statistics.median(seconds["mask"]),
        "server_s": sum(seconds["server"]),
        "helper_s": sum(seconds["helper"]) / HELPERS,
        "prove_ms": 1e3 * statistics.median(seconds["prove"]),
        "verify_ms": 1e3 * statistics.median(seconds["verify"]),
        "noise_s": statistics.median(seconds["noise"]),
        "bytes": federation.bytes,
    }


def _desk(number: int, noise_key: bytes) -> HelperService:
    node_key = ec.generate_private_key(ec.SECP384R1())
    return HelperService(f"helper-{number}", node_key, noise_key=lambda terms: noise_key)


def _terms(size: int, roster: HelperRoster, members: str) -> SumTerms:
    bound, rho = integer_clip(size), gdp_of(EPSILON, DELTA) / ROUNDS
    return SumTerms(
        run=RUN,
        round=1,
        channel="train",
        size=size,
        bits=NOISED_BITS,
        bound=bound,
        clip=1.0,
        sign="signed",
        rho=rho,
        noise=noise_scale(rho, bound, "signed"),
        most=MOST,
        min_sum=5,
        layout=(("update", size),),
        roster=roster.digest,
        keys=tuple(roster.to_json()),
        members=members,
    )
