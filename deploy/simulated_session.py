"""Client of a simulation: a session on a partition, with its state and privacy ledgers in memory."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from client.data.dataset import AnyDataset
from client.policy import Policy
from client.privacy.in_memory import MemoryLedgers
from client.privacy.release import Releaser
from client.session import MODEL, Session
from client.state import MemoryStore
from client.tasks.learner import Learner
from client.tasks.registry import build_learner
from common.config.run import RunConfig
from common.privacy.randomness import fresh_generator
from common.tasks.vocabulary import Vocabulary

simulated_policy = partial(
    Policy, allow_counts="clear", allow_shared_sample=True, share_metrics="always", min_sum=2, helpers_on_first_use=True
)
"""Policy of simulated clients; made anew, since it allows the methods of that time."""


class SeededNoise:
    """Generators of one client's noise, from a root seed.

    Args:
        seed: Root seed.
        node: Number of the client's node.
    """

    def __init__(self, seed: int, node: int) -> None:
        self._seed, self._node = seed, node
        self.drawn = 0
        """Number of generators so far."""

    def __call__(self) -> np.random.Generator:
        """Return the next generator."""
        self.drawn += 1
        return np.random.default_rng([self._seed, self._node, self.drawn - 1])


class SharedStore(MemoryStore):
    """State of a simulated client. It stores no finished model, because the client ends with the run.

    Args:
        documents: Documents of all clients by their content; clients with equal documents share one copy.
        noise: Seeded generators of its noise; None if they are fresh.
    """

    def __init__(self, documents: dict[bytes, bytes], noise: SeededNoise | None = None) -> None:
        super().__init__()
        self._shared, self.noise = documents, noise
        self.policy = simulated_policy()
        self.ledgers = MemoryLedgers(self.policy)

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
    noise = [None if noise_seed is None else SeededNoise(noise_seed, node) for node in range(1, len(parts) + 1)]
    stores = [SharedStore(documents, own) for own in noise]
    pairs = enumerate(zip(parts, stores, strict=True), start=1)
    return {node: _open_session(node, part, store) for node, (part, store) in pairs}, stores


def _open_session(node: int, data: AnyDataset, store: SharedStore) -> Session:
    def learner(config: RunConfig, vocabulary: Vocabulary) -> Learner:
        return build_learner(config, data)

    releaser = Releaser(store.policy, store.ledgers, store.noise or fresh_generator)
    return Session(f"client-{node - 1}", learner, store, releaser)
