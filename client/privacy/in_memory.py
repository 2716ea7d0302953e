"""Releaser for simulated clients: the same checks and noise, with a ledger that ends with the process."""

from collections.abc import Callable

import numpy as np

from client.policy import Policy
from client.privacy.budget import OpenLedger
from client.privacy.ledger.database import MEMORY
from client.privacy.ledger.ledger import Ledger
from client.privacy.release import Releaser
from common.privacy.accounts import Account
from common.privacy.claims import UNBOUNDED
from common.privacy.options import Unit
from common.privacy.randomness import fresh_generator


def in_memory(policy: Policy, generator: Callable[[], np.random.Generator] = fresh_generator) -> Releaser:
    """Return a releaser whose ledger ends with the process."""
    return Releaser(policy, memory_ledger(policy), generator)


def memory_ledger(policy: Policy) -> OpenLedger:
    """Return the function that opens a new ledger, which ends with the process."""

    def open_ledger(unit: Unit, account: Account) -> Ledger:
        return Ledger(MEMORY, unit, account, min(policy.max_epsilon, UNBOUNDED), policy.delta)

    return open_ledger
