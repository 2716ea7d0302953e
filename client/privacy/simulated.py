"""A guard for clients that are only simulated: the same checks and noise, a ledger that ends with the process."""

from collections.abc import Callable

import numpy as np

from client.policy import Policy
from client.privacy.book import MEMORY
from client.privacy.guard import Guard
from client.privacy.ledger import Ledger
from common.privacy.accounts import Account
from common.privacy.claims import UNBOUNDED
from common.privacy.noise import fresh_generator
from common.privacy.options import Unit


def in_memory(policy: Policy, generator: Callable[[], np.random.Generator] = fresh_generator) -> Guard:
    """A guard whose ledger ends with the process: for simulations."""

    def ledger(unit: Unit, account: Account) -> Ledger:
        return Ledger(MEMORY, unit, account, min(policy.max_epsilon, UNBOUNDED), policy.delta)

    return Guard(policy, ledger, generator)
