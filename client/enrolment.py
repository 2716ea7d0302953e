"""Enrolment: runs that a client takes part in, stored so that they resume after a restart."""

import hashlib
import json
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Protocol

from safetensors.numpy import save
from torch import nn

from client.owner.consent import Consent
from client.owner.policy import Policy
from client.state import Store
from client.tasks.learner import DoubtsRun, Learner
from client.trainers.base import Trainer
from client.trainers.registry import build_trainer
from common.arrays import Arrays, check_like, group
from common.config.parse import from_json, read_names
from common.config.run import RunConfig
from common.contract import terms_of
from common.errors import DataError, RefusedError, WireError
from common.models import parameters
from common.privacy.claims import describe_sums
from common.tasks.registry import read_vocabulary
from common.tasks.vocabulary import Vocabulary
from common.text import printable
from common.wire.messages import EnrolRequest

log = logging.getLogger("fedloom.client")

ENROLMENT = "enrolment.json"
"""Name of the document in a run's state."""

UNFIT = "this client's data do not match the run's vocabulary or format; see the client's log"

BESIDE_MODELS = 4_000_000
"""Bytes of a request beside models and what is broadcast with them: properties, terms, names."""

UNFIT_RETRY_SECONDS = 300.0
"""Time after which data that did not match are read again for the same run.

Their owner may have corrected them.
"""


class AcceptedHelpers(Protocol):
    """Helpers of a run that a client accepted, as far as its guarantee rests on them."""

    @property
    def pinned(self) -> tuple[str, ...]:
        """Names of the helpers whose identity is pinned, those of the first contact included."""

    @property
    def first_use(self) -> tuple[str, ...]:
        """Names of the pinned helpers whose identity came from the server at first contact."""


Agree = Callable[[Sequence[str]], None]
"""(keys of the helpers) -> None; RefusedError if the run with these helpers is beyond the contract."""

AcceptHelpers = Callable[[Sequence[str], str, Agree], AcceptedHelpers]
"""(cards, run, agree) -> helpers of a run; RefusedError if the owner relies on too few of them."""

BuildLearner = Callable[[RunConfig, Vocabulary], Learner]

ReadNames = Callable[[RunConfig], Vocabulary]
"""Function that returns the names in the client's own data."""


def no_names(config: RunConfig) -> Vocabulary:
    """Refuse to list names, at clients without a reader.

    Raises:
        RefusedError: Always.
    """
    raise RefusedError("this client cannot list the names in its data")


@dataclass(frozen=True)
class EnrolledRun:
    """Run that this client takes part in, with its data prepared."""

    run: str
    config: RunConfig
    vocabulary: Vocabulary
    learner: Learner
    trainer: Trainer
    """Trainer of the run's method."""
    helpers: AcceptedHelpers | None = None
    """Helpers of the run's secure sums; None under trust `local`."""

    def at(self, number: int) -> "EnrolledRun":
        """Return the run as it is in a round, of the sums before a training or of the training."""
        config = self.config.at(number)
        return (
            self
            if config is self.config
            else replace(self, config=config, trainer=build_trainer(config.method_options))
        )

    @property
    def largest_request(self) -> int:
        """Largest size of a request with a model in bytes; 0 if it is not known."""
        if self.config.has_closed_form:
            return 0  # what the server has solved depends on the data of all clients
        models = max(getattr(self.config.method_options, "clusters", 1), self.config.capabilities.clusters, 1)
        model = sum(p.numel() * p.element_size() for p in self.learner.module.parameters())
        return (models + 1) * model + BESIDE_MODELS

    def split_models(self, model: Arrays) -> list[Arrays]:
        """Return the models of a request: one for each cluster where the client itself chooses, else one.

        That of a closed form is empty.

        Raises:
            WireError: They do not match the run's.
        """
        clusters = self.config.capabilities.clusters if self.helpers else 0
        models = [group(str(j), model) for j in range(clusters)] or [model]
        if sum(map(len, models)) != len(model):
            raise WireError(f"model: the request has other models than those of {clusters} clusters")
        for one in [] if self.config.capabilities.closed_form and not model else models:
            SHARED.check(one, self.learner.module)
        return models


@dataclass(frozen=True)
class NamesRun:
    """Run before its vocabulary is found, with the names in this client's data."""

    run: str
    config: RunConfig
    vocabulary: Vocabulary
    helpers: AcceptedHelpers | None = None


class SharedModel:
    """Check and bytes of the server's models, made once for all clients of a process with the same one."""

    def __init__(self) -> None:
        self._last: tuple[object, object] = None, None
        self._bytes: tuple[object, object, bytes] = None, None, b""

    def serialize(self, model: Arrays, statics: Arrays) -> bytes:
        """Return model and statics as the bytes of a safetensors file."""
        if self._bytes[0] is not model or self._bytes[1] is not statics:
            self._bytes = model, statics, save({**model, **statics})
        return self._bytes[2]

    def check(self, model: Arrays, module: nn.Module) -> None:
        """Check that a model has the arrays of the module.

        Raises:
            WireError: Names, shapes, dtypes or numbers are not those of such a model.
        """
        if self._last[0] is not model or self._last[1] is not module:
            package = getattr(module, "label", "")
            what = f"{package}, whose version must be the server's" if package else "the server's model"
            check_like(model, parameters(module), what)
            self._last = model, module


SHARED = SharedModel()


class Enrolments:
    """Enrolled runs of one client; the newest one stays in memory."""

    def __init__(
        self,
        build_learner: BuildLearner,
        store: Store,
        policy: Policy,
        accept_helpers: AcceptHelpers,
        read_names: ReadNames = no_names,
        consent: Consent | None = None,
    ) -> None:
        self._build_learner, self._store, self._policy, self._read_names = build_learner, store, policy, read_names
        self._accept_helpers, self._consent = accept_helpers, consent or Consent()
        self._runs: dict[str, EnrolledRun] = {}
        self._names: dict[str, NamesRun] = {}
        self._unfit: dict[str, float] = {}

    def open(self, request: EnrolRequest) -> EnrolledRun:
        """Return the run of a request; prepare the data if the run is not open.

        Raises:
            RefusedError: The policy forbids the run or its formula, or the data did not match its vocabulary a short time ago.
        """
        enrolment = fingerprint(request)
        if enrolment in self._unfit and time.monotonic() < self._unfit[enrolment]:
            raise RefusedError(UNFIT)
        return self._runs.get(enrolment) or self._open(enrolment, request)

    def is_open(self, enrolment: str) -> bool:
        """Return True if the run of an enrolment is in memory."""
        return enrolment in self._runs

    def find(self, enrolment: str) -> EnrolledRun:
        """Return the run of an accepted enrolment; after a restart, prepare its data again.

        Raises:
            WireError: This enrolment was never accepted, or another one of the run was accepted since.
            RefusedError: The policy forbids the run, or the data do not match its vocabulary.
        """
        return self._runs.get(enrolment) or self._open(enrolment, _load_request(self._store, enrolment))

    def open_names(self, request: EnrolRequest) -> NamesRun:
        """Return the run of a request without a vocabulary, with the names in the client's data.

        Raises:
            RefusedError: The policy does not allow the run, or to send names; or the data cannot be read.
        """
        enrolment = fingerprint(request)
        if enrolment not in self._names:
            config, helpers = self._accept(request)
            self._policy.check_vocabulary(summed=helpers is not None)
            try:
                self._names = {enrolment: NamesRun(request.run, config, self._read_names(config), helpers)}
            except DataError as error:
                raise RefusedError(UNFIT) from error
        return self._names[enrolment]

    def find_names(self, enrolment: str) -> NamesRun | None:
        """Return the run of an accepted enrolment that had no vocabulary, as `find` does; None if it had one."""
        if enrolment in self._runs or enrolment in self._names:
            return self._names.get(enrolment)
        request = _load_request(self._store, enrolment)
        return None if request.catalogue else self.open_names(request)

    def save(self, request: EnrolRequest) -> None:
        """Store an accepted request, and its terms if the owner has agreed to none."""
        self._consent.settle()
        self._store.write(request.run, ENROLMENT, _describe(*_texts(request))[1])

    def _accept(self, request: EnrolRequest) -> tuple[RunConfig, AcceptedHelpers | None]:
        """Return the configuration and the helpers of a run that the policy and the contract allow."""
        self._policy.check_names(*read_names(request.config))
        config = _read_config(request.config)
        self._policy.check(config)
        _check_same_run(self._store, request.run, config)
        is_summed = config.privacy.resolved_trust == "helpers"

        def agree(helpers: Sequence[str]) -> None:
            self._consent.check(terms_of(config, helpers))

        if is_summed:
            return config, self._accept_helpers(request.helpers, request.run, agree)
        agree(())
        return config, None

    def _open(self, enrolment: str, request: EnrolRequest) -> EnrolledRun:
        if not request.catalogue:
            raise WireError("this enrolment has no vocabulary yet; enrol this client again")
        config, helpers = self._accept(request)
        vocabulary = _read_vocabulary(config.task, request.catalogue)
        try:
            learner = self._build_learner(config, vocabulary)
        except DataError as error:
            self._unfit = {enrolment: time.monotonic() + UNFIT_RETRY_SECONDS}
            raise RefusedError(UNFIT) from error
        if isinstance(learner, DoubtsRun) and (doubt := learner.doubt()):
            log.warning("run %s: %s", printable(request.run), doubt)
            if self._policy.strict_property:
                raise RefusedError("the policy does not allow this run's formula (strict-property = true)")
        if helpers:
            about = config.privacy, self._policy.min_sum, helpers.pinned, helpers.first_use
            guarantee = describe_sums(*about, has_clusters=config.capabilities.clusters > 0)
            log.info("run %s: %s", printable(request.run), guarantee)
        trainer = build_trainer(config.method_options)
        self._runs, self._names = (
            {enrolment: EnrolledRun(request.run, config, vocabulary, learner, trainer, helpers)},
            {},
        )
        return self._runs[enrolment]


def fingerprint(request: EnrolRequest) -> str:
    """Return the name of an enrolment: the run, and a digest of its configuration, vocabulary and helpers."""
    return _describe(*_texts(request))[0]


def _texts(request: EnrolRequest) -> tuple[str, ...]:
    return request.run, request.config, request.catalogue, *request.helpers


@lru_cache(maxsize=4)
def _describe(run: str, config: str, catalogue: str, *helpers: str) -> tuple[str, bytes]:
    """Return the name of an enrolment and its document, made once for all clients of a process."""
    digest = hashlib.sha256("\n".join((config, catalogue, *helpers)).encode()).hexdigest()
    name = f"{run}:{digest[:16]}"
    document = {**asdict(EnrolRequest(run, config, catalogue, [*helpers])), "enrolment": name}
    return name, json.dumps(document).encode()


@lru_cache(maxsize=4)
def _read_config(text: str) -> RunConfig:
    """Read a configuration once for all clients of a process."""
    return from_json(text)


@lru_cache(maxsize=4)
def _read_vocabulary(task: str, text: str) -> Vocabulary:
    """Read a vocabulary once for all clients of a process."""
    return read_vocabulary(task, text)


def _load_request(store: Store, enrolment: str) -> EnrolRequest:
    """Return the accepted request of that fingerprint.

    Raises:
        WireError: Another one was accepted, or none.
    """
    run = enrolment.partition(":")[0]
    document = json.loads(store.read(run, ENROLMENT) or b"{}")
    if document.get("enrolment") != enrolment:
        raise WireError("not enrolled in this run, or under another configuration; enrol this client again")
    return EnrolRequest(run, document["config"], document["catalogue"], document.get("helpers", []))


def _check_same_run(store: Store, run: str, config: RunConfig) -> None:
    """Accept a run whose client state, if any, has the same method and the same privacy unit.

    The client state of a run without noise, or with noise on uploads only, is exact. A run of the same name with noise on
    records would release it without that noise.

    Raises:
        RefusedError: Method, task, model or privacy unit differ.
    """
    stored = store.read(run, ENROLMENT)
    if not stored:
        return
    before = from_json(json.loads(stored)["config"])
    sums_alone = config.method == before.first  # of which a client has no state
    for key in ("task", "model", *(() if sums_alone else ("method",))):
        if getattr(before, key) != getattr(config, key):
            raise RefusedError(f"an earlier run '{run}' had another {key}; choose another run-id")
    if before.privacy.unit != config.privacy.unit:
        raise RefusedError(f"an earlier run '{run}' had another privacy.unit; choose another run-id")
