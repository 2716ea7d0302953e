"""Deliberate faults in the code that releases, which the audit must detect."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
from torch import Tensor

from client.privacy.dp_sgd import DpSgdNoise, sample_private_inputs
from client.privacy.ledger.database import Slot
from client.privacy.ledger.ledger import Ledger
from client.secure.helper import helper_service as desk
from client.training import descent
from client.training.stacks import Tensors
from common.arrays import Floats, Ints
from common.privacy import grid
from common.privacy import mechanisms as gaussian
from common.privacy.mechanisms import Gaussian, Laplace
from common.privacy.vectors import Sign
from common.secure.noise import Stream, discrete_gaussian
from common.secure.quantisation import round_randomly
from studies.audit import sums
from studies.audit.cases import HALVED, NOISELESS, REDRAWN, UNCHARGED, UNCLIPPED

_RELEASE = Ledger.release


def inject(fault: str, way: str) -> AbstractContextManager[Any]:
    """Return a context in which the code has a fault; the empty fault changes nothing."""
    return _FAULTS[fault, way]() if fault else nullcontext()


def _halve_gaussian() -> AbstractContextManager[Any]:
    return patch.object(Gaussian, "noise", property(lambda self: self.sensitivity / (2 * self.rho) ** 0.5 / 2))


def _halve_laplace() -> AbstractContextManager[Any]:
    return patch.object(Laplace, "noise", property(lambda self: self.sensitivity / self.epsilon / 2))


@contextmanager
def _halve_sum() -> Iterator[None]:
    def drawn(scale: int, size: int, stream: Stream) -> Ints:
        return discrete_gaussian(scale // 2, size, stream)

    with patch.object(desk, "discrete_gaussian", drawn), patch.object(sums, "discrete_gaussian", drawn):
        yield


@contextmanager
def _skip_clip() -> Iterator[None]:
    def copied(vector: Floats, largest: float, order: int, normalise: bool) -> Floats:
        return vector.copy()

    def rounded(vector: Floats, largest: float, bound: int, sign: Sign, rng: np.random.Generator) -> Ints:
        return round_randomly(vector * (bound / largest), rng)

    with patch.object(gaussian, "clip", copied), patch.object(grid, "quantise", rounded):
        yield


def _charge_first_round_only() -> AbstractContextManager[Any]:
    kept: dict[Slot, bytes] = {}

    def release(self: Ledger, slot: Slot, terms: Any, make: Callable[[], bytes], limits: Any) -> bytes:
        if slot.round == 1:
            return _RELEASE(self, slot, terms, make, limits)
        if slot not in kept:
            kept.clear()
            kept[slot] = make()
        return kept[slot]

    return patch.object(Ledger, "release", release)


def _redraw_retries() -> AbstractContextManager[Any]:
    def release(self: Ledger, slot: Slot, terms: Any, make: Callable[[], bytes], limits: Any) -> bytes:
        charged = self.charge(slot, terms, limits)
        return make() if isinstance(charged, bytes) else self.store(charged, make())

    return patch.object(Ledger, "release", release)


def _leave_noise_out() -> AbstractContextManager[Any]:
    def silent(params: Mapping[str, Tensor], rows: int, records: int, steps: int, noise: DpSgdNoise) -> Tensors:
        return sample_private_inputs(params, rows, records, steps, replace(noise, multiplier=0.0))

    return patch.object(descent, "sample_private_inputs", silent)


_FAULTS: dict[tuple[str, str], Callable[[], AbstractContextManager[Any]]] = {
    (HALVED, "gaussian"): _halve_gaussian,
    (HALVED, "laplace"): _halve_laplace,
    (HALVED, "sum"): _halve_sum,
    (UNCLIPPED, "gaussian"): _skip_clip,
    (UNCHARGED, "laplace"): _charge_first_round_only,
    (REDRAWN, "laplace"): _redraw_retries,
    (NOISELESS, "record"): _leave_noise_out,
}
