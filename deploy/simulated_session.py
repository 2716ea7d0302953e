"""Client of a simulation: a session on a partition, with state and privacy ledger in memory."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count

import numpy as np

from client.data.dataset import AnyDataset
from client.policy import Policy
from client.privacy.in_memory import in_memory
from client.session import MODEL, Session
from client.state import MemoryStore, Store
from client.tasks.learner import Learner
from client.tasks.registry import build_learner
from common.config.run import RunConfig
from common.privacy.randomness import fresh_generator
from common.tasks.vocabulary import Vocabulary

simulated_policy = partial(
    Policy, allow_counts="clear", allow_shared_sample=True, share_metrics="always", min_sum=2, helpers_on_first_use=True
)
"""Policy of simulated clients; made anew, since it allows the methods of that time."""


class SharedStore(MemoryStore):
    """State of a simulated client. It stores no finished model, because the client ends with the run.

    Args:
        documents: Documents of all clients by their content; clients with equal documents share one copy.
    """

    def __init__(self, documents: dict[bytes, bytes]) -> None:
        super().__init__()
        self._shared = documents

    def write(self, run: str, name: str, content: bytes) -> None:
        """Replace a document of a run, as in `Store`."""
        if name != MODEL:
            super().write(run, name, self._shared.setdefault(content, content))


def open_sessions(
    parts: Sequence[AnyDataset], noise_seed: int | None = None
) -> tuple[dict[int, Session], list[SharedStore]]:
    """Return the sessions of simulated clients by node id, from 1, and their stores in the same order.

    Args:
        parts: The clients' partitions.
        noise_seed: Root seed of DP noise; None samples fresh noise.
    """
    documents: dict[bytes, bytes] = {}
    stores = [SharedStore(documents) for _ in parts]
    pairs = enumerate(zip(parts, stores, strict=True), start=1)
    return {node: _open_session(node, part, store, noise_seed) for node, (part, store) in pairs}, stores


def _open_session(node: int, data: AnyDataset, store: Store, noise_seed: int | None) -> Session:
    def learner(config: RunConfig, vocabulary: Vocabulary) -> Learner:
        return build_learner(config, data)

    seeded = fresh_generator if noise_seed is None else partial(_next_generator, noise_seed, node, count())
    return Session(f"client-{node - 1}", learner, store, in_memory(simulated_policy(), seeded))


def _next_generator(noise_seed: int, node: int, releases: Iterator[int]) -> np.random.Generator:
    return np.random.default_rng([noise_seed, node, next(releases)])
