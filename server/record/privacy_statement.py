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
    mechanism="none: clients send model updates without clipping and noise; data stay on the clients, and what updates reveal"
    " is not bounded",
    epsilon_spent_max=None,
    delta=None,
    uncovered=["model updates", "training losses", "metrics", "numbers of records", "who takes part and when"],
)
"""Statement of a run without differential privacy: no guarantee."""

MASKED = replace(
    UNPROTECTED,
    mechanism="none: clients send masked updates without clipping and noise; the server learns their sums alone",
    uncovered=["sums of model updates", "sums of metrics", *(each for each in UNCOVERED_SUMS if each != COPIES)],
)
"""Statement of a run of secure sums without differential privacy, apart from its guarantee."""

SUMMED = "counts that models start from: each client's own, sent to the server in plaintext (count-offset)"

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

ALL, NUMBERS = "all values that a client sends", "all numbers that a client sends, apart from item ids in plaintext"

COUNTS = (
    "Gaussian noise that each client adds itself: (ε = {epsilon:g}, δ = {delta:g})-private for each of its users, whatever the "
    "server and other clients do"
)
"""Guarantee of counts in a run whose updates have no noise."""

EQUAL_WEIGHTS = "uniform: weighting=examples needs numbers of records, which no client of a run with noise sends"
"""Weights of clients in a run with noise that was asked to weigh by records."""

SUMMED_COUNTS = (
    "noise of each helper on their sum: (ε = {epsilon:g}, δ = {delta:g}) for any two contents of a client's data, if at least"
    " one helper followed the protocol and kept its key"
)
"""Guarantee of summed counts in a run of secure sums whose updates have no noise."""


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

    Args:
        config: Configuration of the run.
        spent: Client -> cost that the server requested of it, in the run's account.
        sharing: Number of clients that sent their metrics.
        helpers: Names of the helpers of the run's secure sums.
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
        task, method = config.task_options, config.method_options
        plaintext = [ITEM_IDS] if task.named_rows else []
        plaintext += [GATHERED_ROWS] if task.gathers_rows and names_rows(config) else []
        plaintext += [channel for channel in method.uncovered() if channel not in task.not_sent()]
        has_counts = task.count_offset is True or (is_summed and task.count_offset == "auto")
        is_exact = has_counts and task.count_privacy.unit == "none"
        plaintext += [SUMMED] if is_exact and not is_summed else []
        plaintext += [*task.uncovered()]
        bare = MASKED if is_summed else UNPROTECTED
        plaintext += ["sums of counts that models start from"] if is_summed and is_exact else []
        way = "in sums that the server learns" if is_summed else "which it sends in plaintext"
        plaintext += [NAMES.format(least=config.federation.min_holders, way=way)] * (config.catalogue == FEDERATED)
        plaintext += ["number of clients in each cluster"] if is_summed and config.capabilities.clusters else []
        counts = _guarantee_of_counts(config)
        copies = [COPIES] if counts else []
        return replace(bare, counts=counts, uncovered=[*plaintext, *bare.uncovered, *copies])
    account = build_account(options)
    most = max(spent.values(), default=0.0) + config.count_cost + config.metric_cost
    metrics = [f"metrics: {sharing} clients send theirs in plaintext, as their policies allow"] if sharing else []
    metrics += [CHOICE] if sharing and chooses_model(config) else []
    ids = [ITEM_IDS] if config.task_options.named_rows else []
    size = ["size: how many records a client has", HELD_OUT] if options.unit == "record" else []
    return Privacy(
        unit=options.unit,
        mechanism=select_spec(options).summary.format(what=NUMBERS if ids else ALL, **options.model_dump()),
        epsilon_spent_max=min(account.claim(most, options.delta), options.epsilon) if most else 0.0,
        delta=options.delta if account.has_delta else None,
        uncovered=[*ids, *metrics, *size, *(UNCOVERED_SUMS if is_summed else UNCOVERED), *IN_A_RUN],
        epsilon=options.epsilon,
        neighbours=SAME_ITEMS if ids else NEIGHBOURS[options.unit],
        account=account.name,
        weights=EQUAL_WEIGHTS if config.method_options.weighting == "examples" else "",
    )


def _guarantee_of_counts(config: RunConfig) -> str:
    """Return the guarantee of counts beside updates without noise; empty if the counts have none."""
    noise = config.task_options.count_privacy
    if noise.unit == "none" or not config.task_options.count_offset:
        return ""
    return (COUNTS if noise.unit == "record" else SUMMED_COUNTS).format(epsilon=noise.epsilon, delta=noise.delta)
