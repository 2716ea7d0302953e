"""Sessions of clients with toy homes, for federations in one process."""

from collections.abc import Sequence

from client.data.dataset import Dataset
from client.owner.policy import Policy
from client.privacy.simulation import in_memory
from client.session import Session
from client.state import Store
from client.tasks.learner import Learner
from client.tasks.registry import build_learner
from client.tasks.rules.data.homes import Home
from common.config.run import RunConfig
from common.tasks.vocabulary import Vocabulary
from tests.support.toys import toy_homes


def toy_session(name: str, homes: tuple[Home, ...], store: Store, policy: Policy | None = None) -> Session:
    def learner(config: RunConfig, vocabulary: Vocabulary) -> Learner:
        return build_learner(config, Dataset(homes, vocabulary))

    return Session(name, learner, store, in_memory(policy or Policy(allow_counts="clear")))


def toy_sessions(stores: Sequence[Store]) -> dict[int, Session]:
    """Return a session for each store, with one home each, by node id."""
    homes = toy_homes(len(stores))
    return {k + 1: toy_session(f"client-{k}", (home,), stores[k]) for k, home in enumerate(homes)}
