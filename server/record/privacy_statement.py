"""Privacy statement of a run, in the words of its clients' ledgers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from common.config.run import RunConfig, chooses_model, names_rows
from common.privacy.claims import (
    COPIES,
    GATHERED_ROWS,
    HELD_OUT,
    ITEM_IDS,
    NEIGHBOURS,
    SAME_ITEMS,
    UNCOVERED,
    UNCOVERED_SUMS,
    describe_sums,
)
from common.privacy.mechanisms import build_account, select_spec
from common.tasks.vocabulary import FEDERATED
from server.record.result import Parent, Privacy

UNPROTECTED = Privacy(
    unit="none",
    mechanism="none: clients send replies without clipping and noise; data stay on the clients, and what replies reveal is not"
    " bounded",
    epsilon_spent_max=None,
    delta=None,
    uncovered=["model updates", "training losses", "metrics", "numbers of records", "who takes part and when"],
)
"""Statement of a run without differential privacy: no guarantee."""

MASKED = replace(
    UNPROTECTED,
    mechanism="none: clients send masked replies without clipping and noise; the server learns their sums alone",
    uncovered=["sums of model updates", "sums of metrics", *(each for each in UNCOVERED_SUMS if each != COPIES)],
)
"""Statement of a run of secure sums without differential privacy, apart from its guarantee."""

CHOICE = "choice: these metrics choose the round whose model is delivered (federation.deliver=best)"

IN_A_RUN = (
    "vocabulary: the names in clients' data are taken as public",
    "tuning: that options were chosen by results of earlier runs on these data",
)
"""Uncovered channels of a whole run, in addition to those of every release."""

NAMES = (
    "names: hashes of all names in a client's data, and the names in hash buckets of at least {least} clients, {way};"
    " those that {least} clients have are in the vocabulary"
)
"""Uncovered channel of a run whose clients find the vocabulary."""

GUESSED_NAMES = (
    "names: a server that lies about frequent hash buckets learns which of {most:,} names of its choice are in some client's"
    " data; other names have the guarantee"
)
"""Uncovered channel of a run with noise whose clients find names, in place of the first of `IN_A_RUN`."""

ALL, NUMBERS = "all values that a client sends", "all numbers that a client sends, apart from item ids in plaintext"

EQUAL_WEIGHTS = "uniform: weighting=examples needs numbers of records, which no client of a run with noise sends"
"""Weights of clients in a run with noise that was asked to weigh by records."""

INHERITED = "run {run}, from which this one started: its model holds what its clients sent, {guarantee}"
"""Uncovered channel of a run that continues another one."""

ADDED = "; for clients of both runs the guarantees add up, and each client's ledger counts both"


def with_parent(found: Privacy, parent: Parent) -> Privacy:
    """Return the statement of a run that started from another one."""
    channel = INHERITED.format(
        run=parent.run, guarantee="without noise" if parent.unit == "none" else "under the statement of that run"
    )
    channel += ADDED if parent.unit != "none" and found.unit != "none" else ""
    return replace(found, uncovered=[*found.uncovered, channel])


def statement(
    config: RunConfig, spent: Mapping[str, float], sharing: int, helpers: Sequence[str] = ("its helpers",)
) -> Privacy:
    """Return the privacy statement of a run.

    `spent` has the cost that the server requested of each client, and `sharing` the number of clients that sent metrics.
    """
    found = _of_values(config, spent, sharing)
    if config.privacy.resolved_trust != "helpers" or config.privacy.unit == "record":
        return found
    about = config.privacy, config.secure_sums.min_sum, helpers
    return replace(found, guarantee=describe_sums(*about, has_clusters=config.capabilities.clusters > 0))


def _of_values(config: RunConfig, spent: Mapping[str, float], sharing: int) -> Privacy:
    options = config.privacy
    is_summed = options.resolved_trust == "helpers" and options.unit != "record"  # its noise is that of clients
    if options.unit == "none":
        task, methods = config.task_options, [phase.method_options for phase in config.phases]
        plaintext = [ITEM_IDS] if task.named_rows else []
        plaintext += [GATHERED_ROWS] if task.gathers_rows and names_rows(config) else []
        channels = [channel for method in methods for channel in method.uncovered()]
        plaintext += [channel for channel in channels if channel not in task.not_sent()]
        plaintext += [*task.uncovered()]
        bare = MASKED if is_summed else UNPROTECTED
        way = "in sums that the server learns" if is_summed else "which it sends in plaintext"
        plaintext += [NAMES.format(least=config.federation.min_holders, way=way)] * (config.catalogue == FEDERATED)
        plaintext += ["number of clients in each cluster"] if is_summed and config.capabilities.clusters else []
        trains = not all(phase.capabilities.closed_form for phase in config.phases)  # statistics are named before
        sent = [each for each in bare.uncovered if trains or not each.endswith(("model updates", "training losses"))]
        return replace(bare, uncovered=[*plaintext, *sent])
    account = build_account(options)
    most = max(spent.values(), default=0.0) + config.side_cost
    metrics = [f"metrics: {sharing} clients send theirs in plaintext, as their policies allow"] if sharing else []
    metrics += [CHOICE] if sharing and chooses_model(config) else []
    ids = [ITEM_IDS] if config.task_options.named_rows else []
    names = [GUESSED_NAMES.format(most=noise.most_frequent)] if (noise := config.name_noise) else []
    in_a_run = [*names, *IN_A_RUN[len(names) :]]
    size = ["size: how many records a client has", HELD_OUT] if options.unit == "record" else []
    return Privacy(
        unit=options.unit,
        mechanism=select_spec(options).summary.format(what=NUMBERS if ids else ALL, **options.model_dump()),
        epsilon_spent_max=min(account.claim(most, options.delta), options.epsilon) if most else 0.0,
        delta=options.delta if account.has_delta else None,
        uncovered=[*ids, *metrics, *size, *(UNCOVERED_SUMS if is_summed else UNCOVERED), *in_a_run],
        epsilon=options.epsilon,
        neighbours=SAME_ITEMS if ids else NEIGHBOURS[options.unit],
        account=account.name,
        weights=EQUAL_WEIGHTS if config.method_options.weighting == "examples" else "",
    )
