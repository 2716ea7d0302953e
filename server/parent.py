"""Parent of a run: the finished run from which it starts (`--start-from`).

Networks start from its model, with new rows where the vocabulary has grown. Closed forms add its sums, by the half-life, to
those of the clients of this run. State of a method, such as moments, is of one run.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from common.arrays import Array, Arrays, sha256
from common.config.keys import respell
from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import ConfigError, DataError, StateError
from common.tasks.closed_form import NAMES, VALUES
from common.tasks.registry import TASKS, closed_form_of, read_vocabulary
from common.tasks.vocabulary import Vocabulary
from common.text import count
from server.compose import build_method
from server.record.events import Start
from server.record.folder import BEST_MODEL, RunDirectory
from server.record.journal import restore
from server.record.result import Parent, Result
from server.round.state import PARENT_SUMS, SUMS, RunState

DAY_SECONDS = 86_400.0


@dataclass(frozen=True)
class ParentRun:
    """Finished run that another one can continue."""

    folder: RunDirectory
    config: RunConfig
    result: Result

    @classmethod
    def find(cls, folder: RunDirectory, config: RunConfig) -> "ParentRun":
        """Return the run in a folder, from which a run of this configuration starts.

        Raises:
            ConfigError: It does not exist, is not finished, or is of another task or kind of model.
        """
        name, stored = folder.path.name, folder.config()
        if (result := folder.result()) is None or result.status != "completed":
            state = "is not finished" if result is None else f"failed ({result.error})"
            raise ConfigError(f"run '{name}' {state}, so no run starts from it; continue it with --resume {name}")
        parent = parse({**respell(stored), "resume": False})
        for key, theirs, ours in (("task", parent.task, config.task), ("model", parent.model, config.model)):
            if theirs != ours:
                raise ConfigError(f"run '{name}' has {key}={theirs}, this run {key}={ours}; set {key}={theirs}")
        is_closed = parent.capabilities.closed_form
        if is_closed != config.capabilities.closed_form:
            kind = "sums" if is_closed else "a trained model"
            raise ConfigError(
                f"run '{name}' has {kind} (method {parent.method}), from which method {config.method} does not start;"
                f" set --method {parent.method}"
            )
        if is_closed and (parent.privacy.unit == "none") != (config.privacy.unit == "none"):
            differs = "with noise have other sums than those without"
            remedy = "remove --epsilon" if parent.privacy.unit == "none" else "set --epsilon"
            raise ConfigError(f"runs {differs}, and run '{name}' is of the other kind; {remedy}")
        return cls(folder, parent, result)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Vocabulary of the run."""
        return read_vocabulary(self.config.task, self.folder.catalogue())

    def extend(self, given: Vocabulary) -> Vocabulary:
        """Return the vocabulary of the run with further names.

        Raises:
            ConfigError: The other vocabulary differs in more than names.
        """
        try:
            return self.vocabulary.extended(given)
        except DataError as error:
            raise ConfigError(f"no run starts from '{self.folder.path.name}' with these data: {error}") from None

    def describe(self, half_life: float, now: float) -> Parent:
        """Return what this run is for one that starts now, in seconds since 1970, with a half-life in days."""
        started = next((event.time for event in self.folder.events() if isinstance(event, Start)), now)
        days = max(now - started, 0.0) / DAY_SECONDS
        return Parent(
            run=self.folder.path.name,
            model_sha256=self.result.model_sha256,
            days=days,
            weight=2 ** (-days / half_life) if half_life else 1.0,
            unit=self.result.privacy.unit,
        )

    def load(self) -> RunState:
        """Return the last state.

        Raises:
            StateError: It is missing, damaged, or not that of the result.
        """
        name, checkpoint = self.folder.path.name, self.folder.checkpoints.load_latest()
        if checkpoint is None:
            raise StateError(f"run '{name}' has no checkpoint; restore {self.folder.checkpoints.path}")
        state = restore(checkpoint)
        found = sha256({**state.model, **state.statics} if self.config.has_closed_form else state.model)
        if found != self.result.model_sha256:
            raise StateError(
                f"the model of run '{name}' (sha256 {found[:16]}) is not that of its result"
                f" ({self.result.model_sha256[:16]}); restore its folder, or start from another run"
            )
        return state

    def delivered(self, state: RunState) -> Arrays:
        """Return the model that its clients use: that of the best validated round, or the last one."""
        if not (self.folder.path / BEST_MODEL).exists():
            return state.model
        return {name: a for name, a in self.folder.load_model(BEST_MODEL)[0].items() if name in state.model}


def extend_vocabulary(config: RunConfig, folder: RunDirectory, read: Callable[[], Vocabulary]) -> Vocabulary:
    """Return the vocabulary that `read` returns, behind the names of the run from which this one starts.

    Raises:
        ConfigError: It cannot start from that run.
    """
    if not config.start_from:
        return read()
    return ParentRun.find(RunDirectory(folder.path.parent, config.start_from), config).extend(read())


def continue_state(config: RunConfig, vocabulary: Vocabulary, initial: RunState, folder: RunDirectory) -> RunState:
    """Return the state of a new run that starts from its parent, and store in its folder what that is.

    Raises:
        ConfigError: The parent has other parameters, or the vocabulary does not extend its own.
        StateError: Its model is missing or damaged, or it stores no sums.
    """
    parent = ParentRun.find(RunDirectory(folder.path.parent, config.start_from), config)
    if parent.extend(vocabulary) != vocabulary:
        raise ConfigError(
            f"the names of this run are not in the order of those of run '{config.start_from}'; start a new run from it"
        )
    state, about = parent.load(), parent.describe(config.half_life, time.time())
    if config.capabilities.closed_form:
        sums = state.memory.get(SUMS)
        if not sums:
            raise StateError(
                f"run '{about.run}' stores no sums that another run can continue; repeat it with this release"
            )
        _check_sums(config, parent, state)
        weighed = {name: a * about.weight if name.endswith(VALUES) else a for name, a in sums.items()}
        started = replace(initial, memory={PARENT_SUMS: weighed})
    else:
        started = replace(initial, model=_grow_model(config, parent, parent.delivered(state), initial))
    folder.write_parent(about)
    return started


def _check_sums(config: RunConfig, parent: ParentRun, state: RunState) -> None:
    """Check that rows of the parent's sums are those of this run under the parent's vocabulary.

    Raises:
        ConfigError: They are others, such as lags of another horizon.
    """
    form = closed_form_of(config.task)
    started = form.start(config.task_run(TASKS[config.task], parent.vocabulary))
    for name, rows in form.lasting.items():
        if name + NAMES in state.memory[SUMS] and tuple(rows.lists(started)) != tuple(rows.lists(state.statics)):
            run = parent.folder.path.name
            raise ConfigError(
                f"run '{run}' has sums of another form: {name} has other rows; take its options with --config"
                f" runs/{run}/config.toml"
            )


def find_repeated(config: RunConfig, folder: RunDirectory, examples: Mapping[str, int]) -> str:
    """Return a remark on clients that may add the same data to sums again; empty with a half-life.

    `examples` has the number of records of each client.
    """
    if not (config.start_from and config.capabilities.closed_form) or config.half_life:
        return ""
    parent = RunDirectory(folder.path.parent, config.start_from)
    before = result.clients if (result := parent.result()) else {}
    same = sum(name in before and before[name].examples == number for name, number in examples.items())
    if not same:
        return ""
    have = "has" if same == 1 else "have"
    return (
        f"{count(same, 'client')} {have} the name and the number of records of a client of run {config.start_from}; data that"
        " are sent again count twice, so continue with data since then, or set --half-life"
    )


def _grow_model(config: RunConfig, parent: ParentRun, trained: Arrays, initial: RunState) -> Arrays:
    """Return a trained model, or those of its clusters, in the shapes of this run's.

    Raises:
        ConfigError: It has other parameters.
    """
    from common.models import build_model, parameters  # PyTorch, which a resumed run does not need

    spec, started = TASKS[config.task], build_method(config, initial).assignment.start(initial, config).model
    fresh = started if trained.keys() == started.keys() else initial.model
    form = parameters(build_model(spec, config.task_run(spec, parent.vocabulary)))
    _check_form(parent.folder.path.name, trained, {key: form[key.partition("/")[2] or key] for key in fresh})
    return grow(trained, fresh)


def _check_form(name: str, trained: Arrays, form: Arrays) -> None:
    """Check that a trained model has the parameters of this run under its own vocabulary.

    Raises:
        ConfigError: It has others.
    """
    for key in sorted(trained.keys() | form.keys()):
        theirs, ours = (_shape(arrays.get(key)) for arrays in (trained, form))
        if theirs != ours:
            raise ConfigError(
                f"run '{name}' has another model: {key} is {theirs}, in this run {ours}; take its options with --config"
                f" runs/{name}/config.toml"
            )


def grow(trained: Arrays, fresh: Arrays) -> Arrays:
    """Return fresh parameters with trained ones at the start of their axes.

    An axis is longer where there are more names.
    """
    grown = {name: a.copy() for name, a in fresh.items()}
    for name, a in trained.items():
        grown[name][tuple(map(slice, a.shape))] = a
    return grown


def _shape(a: Array | None) -> str:
    return "missing" if a is None else " × ".join(map(str, a.shape)) or "a number"
