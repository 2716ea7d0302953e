"""Federation in one process whose server and clients keep what outlives them in files."""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import count

import numpy as np
from cryptography.hazmat.primitives.asymmetric import ec
from flwr.app import Error, Message

from client.data.read import read_partition
from client.owner.policy import Policy
from client.privacy.ledger.ledger import Ledger
from client.privacy.ledger.locate import open_ledger
from client.privacy.release import Releaser
from client.secure.helper.app import answer
from client.secure.helper.helper_service import HelperService
from client.session import Session
from client.state import DiskStore
from client.tasks.learner import Learner
from client.tasks.registry import build_learner
from common.config.run import RunConfig
from common.privacy.accounts import Account
from common.privacy.claims import UNBOUNDED
from common.privacy.options import Unit
from common.secure.terms import SumTerms
from common.tasks.vocabulary import Vocabulary
from deploy.simulation.grid import InProcessGrid
from server.exchange.grid import LOST_CODES
from server.record.folder import RunDirectory
from server.record.result import Result
from server.run import run
from studies.secure.kill_answers import Answers
from studies.secure.kill_switch import SERVER, KilledError, KillSwitch

CLIENTS, HELPERS = 5, 2
DATA = "demo:0-5"
POLICY = Policy(min_sum=2, helpers_on_first_use=True, share_metrics="never")


class KillGrid(InProcessGrid):
    """Grid whose nodes and server can be killed between any two messages; it records what leaves a node.

    Args:
        federation: Its processes.
    """

    def __init__(self, federation: "KillFederation") -> None:
        super().__init__(federation.sessions, 1, helpers=[partial(answer, desk) for desk in federation.desks.values()])
        self._federation, self._switch = federation, federation.switch
        self._names = dict(enumerate((*federation.clients, *federation.desks), start=1))

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        """Deliver one message after the other; a node that is killed does not answer and starts again."""
        return [self._deliver(message) for message in messages]

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        """Return the replies."""
        self._switch.pass_moment()
        return super().pull_messages(message_ids)

    def _deliver(self, message: Message) -> str:
        self._switch.pass_moment()
        node = message.metadata.dst_node_id
        name = self._names[node]
        try:
            with self._switch.run_as(name):
                self._switch.pass_moment()
                [number] = super().push_messages([message])
                self._switch.pass_moment()
            self._federation.answers.record(name, message, self._replies[number])
        except KilledError:
            self._restart(node, name)
            number = message.metadata.message_id or self._new_id(message)
            self._replies[number] = Message(Error(LOST_CODES[-1], "killed"), reply_to=message)
        return number

    def _restart(self, node: int, name: str) -> None:
        self._federation.restart(name)
        if name in self._federation.desks:
            self._helpers[node] = partial(answer, self._federation.desks[name])

    def _new_id(self, message: Message) -> str:
        number = str(next(self._ids))
        message.metadata.__dict__["_message_id"] = number
        return number


class KillFederation:
    """Clients with ledgers, helpers and a server, each with a folder of its own.

    Noise has seeds that depend on names and rounds alone, so that models can be compared.

    Args:
        switch: Kills of its processes.
    """

    def __init__(self, switch: KillSwitch) -> None:
        self.switch, self.answers = switch, Answers()
        self.runs = switch.folder / SERVER / "runs"
        self.runs.mkdir(parents=True)
        self.clients = [f"client-{number}" for number in range(CLIENTS)]
        helpers = [f"helper-{number}" for number in range(HELPERS)]
        for name in (*self.clients, *helpers):
            (switch.folder / name).mkdir()
        self.sessions = {node: self._open_session(name) for node, name in enumerate(self.clients, start=1)}
        self.desks = {name: _start_desk(name) for name in helpers}

    def run(self, config: RunConfig) -> Result:
        """Return the result of a run; after each kill the server resumes it."""
        with self.switch.watch_files():
            while True:
                has_begun = (self.runs / config.run_id / "config.toml").exists()
                if (
                    has_begun
                    and (done := RunDirectory(self.runs, config.run_id).result())
                    and done.status == "completed"
                ):
                    return done
                with suppress(KilledError):
                    return run(KillGrid(self), config.model_copy(update={"resume": has_begun}), self.runs)
                self.switch.restore(SERVER)

    def restart(self, name: str) -> None:
        """Start a killed client or helper with its files."""
        self.switch.restore(name)
        if name in self.desks:
            self.desks[name] = _start_desk(name)
        else:
            self.sessions[self.clients.index(name) + 1] = self._open_session(name)

    def ledger(self, name: str, unit: Unit, account: Account) -> Ledger:
        """Open a client's ledger."""
        folder = self.switch.folder / name
        return open_ledger(DATA, folder, name, unit, account, min(POLICY.max_epsilon, UNBOUNDED), POLICY.delta)

    def _open_session(self, name: str) -> Session:
        folder, number = self.switch.folder / name, self.clients.index(name)

        def learner(config: RunConfig, vocabulary: Vocabulary) -> Learner:
            return build_learner(config, read_partition(config.task, DATA, (number, CLIENTS), 0, vocabulary))

        releaser = Releaser(POLICY, partial(self.ledger, name), partial(_generator, number, count()))
        return Session(name, learner, DiskStore(folder / "state"), releaser, folder / "helpers.json")


def _start_desk(name: str) -> HelperService:
    def noise_key(terms: SumTerms) -> bytes:
        return hashlib.sha256(f"{name}|{terms.round}|{terms.channel}".encode()).digest()

    key = ec.derive_private_key(2 + int(name.partition("-")[2]), ec.SECP384R1())
    return HelperService(name, key, noise_key=noise_key)


def _generator(number: int, releases: Iterator[int]) -> np.random.Generator:
    return np.random.default_rng([number, next(releases)])
