"""Client of a simulation: a session on a partition, with state and privacy ledger in memory."""

from collections.abc import Iterator
from functools import partial
from itertools import count

import numpy as np

from client.data.dataset import AnyDataset
from client.policy import Policy
from client.privacy.in_memory import in_memory
from client.session import MODEL, Session
from client.state import MemoryStore
from client.tasks.learner import Learner
from client.tasks.registry import build_learner
from common.config.run import RunConfig
from common.privacy.randomness import fresh_generator
from common.tasks.vocabulary import Vocabulary

simulated_policy = partial(Policy, allow_counts=True, allow_shared_sample=True, share_metrics="always")
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


def open_session(node: int, data: AnyDataset, documents: dict[bytes, bytes], noise_seed: int | None) -> Session:
    """Return the session of a simulated client.

    Args:
        node: Node id, from 1.
        data: The client's partition.
        documents: Documents of all clients by their content.
        noise_seed: Root seed of DP noise; None samples fresh noise.
    """

    def learner(config: RunConfig, vocabulary: Vocabulary) -> Learner:
        return build_learner(config, data)

    seeded = fresh_generator if noise_seed is None else partial(_next_generator, noise_seed, node, count())
    return Session(f"client-{node - 1}", learner, SharedStore(documents), in_memory(simulated_policy(), seeded))


def _next_generator(noise_seed: int, node: int, releases: Iterator[int]) -> np.random.Generator:
    return np.random.default_rng([noise_seed, node, next(releases)])
