"""Parts of a client in the secure sums of a run: updates, counts and metrics."""

from collections.abc import Callable

from safetensors.numpy import load, save

from client.enrolment import EnrolledRun
from client.owner.policy import Policy
from client.privacy.release import Releaser
from client.privacy.transforms import Update, UpdateChain, ZerosOnFailure, update_of
from client.secure.terms import AcceptedRoster, ExpectedSum
from client.secure.upload import Blocks, ForSum, SumPart
from client.state import Store
from client.tasks.counts import COUNTS
from client.tasks.learner import HasCounts
from client.training.local_round import zero_reply
from common.arrays import Arrays
from common.errors import RefusedError
from common.secure.cards import HelperRoster
from common.secure.terms import SumTerms
from common.tasks.registry import TASKS
from common.tasks.summed_metrics import summed_metrics
from common.wire.messages import LOCAL, CountsReply, CountsRequest, EvaluateReply, EvaluateRequest, TrainRequest

TRAIN = "train"
"""Channel of the sum of updates."""

GROUP = "sum-group"
"""Document with the last round of a run with groups, and the channel of this client's sum in it."""


def _roster(run: EnrolledRun) -> HelperRoster:
    """Return the helpers of a run's sums.

    Raises:
        RefusedError: The client has not accepted any.
    """
    if not isinstance(run.helpers, AcceptedRoster):
        raise RefusedError("this run announces secure sums, and its helpers were not accepted")
    return run.helpers.roster


def join_training(
    client: str, run: EnrolledRun, policy: Policy, store: Store, request: TrainRequest, steps: int
) -> SumPart:
    """Return the part of a client in a round's sum of updates.

    Args:
        client: Name of the client.
        run: The run and the client's data.
        policy: The owner's policy.
        store: State of the client.
        request: Training request with the terms of the sum.
        steps: Number τ_k of local steps.

    Raises:
        WireError: The terms are malformed.
        RefusedError: They are not those of the round's sum, or the request is for a reply of this client alone.
    """
    if request.phase != LOCAL:
        raise RefusedError(f"this run announces secure sums, and a reply of phase '{request.phase}' is not part of one")
    zeros = zero_reply(run.config.method_options, run.learner, request, steps)
    privacy = run.config.privacy
    expected = ExpectedSum(
        run=run.run,
        round=request.round,
        channel=_channel(run, store, request),
        roster=_roster(run),
        min_sum=policy.min_sum,
        template=Blocks(run.config, steps).of(update_of(zeros)).arrays,
        rho=request.cost if privacy.unit == "client" else 0.0,
        clip=privacy.clip * request.clip,
    )
    return SumPart(client, expected.accept(request.terms), expected.roster, expected.template)


def _channel(run: EnrolledRun, store: Store, request: TrainRequest) -> str:
    """Return the channel of this client's sum; in runs with groups the first one of the round stands.

    Two sums of one round with equal other clients would show the client's own vector.

    Raises:
        RefusedError: The client is in another group of the round.
    """
    groups = run.config.secure_sums.groups
    if groups == 1 or not request.terms:
        return TRAIN
    channel = SumTerms.from_json(request.terms).channel
    if channel not in {f"{TRAIN}/{g}" for g in range(groups)}:
        return f"{TRAIN}/0"  # the terms are then refused
    number, _, before = (store.read(run.run, GROUP) or b"0 ").decode().partition(" ")
    if int(number) == request.round and before != channel:
        raise RefusedError(f"this client's sum of round {request.round} is {before}, not {channel}; nothing was sent")
    store.write(run.run, GROUP, f"{request.round} {channel}".encode())
    return channel


COUNTS_CHANNEL = "counts"
"""Channel of the sum of counts, in round 0."""


def upload_counts(
    client: str, run: EnrolledRun, releaser: Releaser, store: Store, request: CountsRequest
) -> CountsReply:
    """Return a client's masked counts, and store its own part of their sum.

    With noise, each number is bounded first, so that helpers' noise covers them as one vector.

    Raises:
        WireError: The terms of the sum are malformed.
        RefusedError: The policy or the run does not allow counts, the terms are not acceptable, or a limit is exceeded.
    """
    learner, statistics = run.learner, TASKS[run.config.task].counts
    if (
        run.helpers is None
        or not run.config.task_options.count_offset
        or not (statistics and statistics.template)
        or not isinstance(learner, HasCounts)
    ):
        raise RefusedError("the run's configuration does not announce such counts; set count-offset of its task")
    rho = run.config.count_cost
    if not rho:
        releaser.policy.check_counts(summed=True)
    template = statistics.template(run.config.task_options, run.vocabulary)
    expected = ExpectedSum(
        run=run.run,
        round=0,
        channel=COUNTS_CHANNEL,
        roster=_roster(run),
        min_sum=releaser.policy.min_sum,
        template=template,
        rho=rho,
        clip=statistics.clip,
        sign=statistics.sign if rho else "signed",
    )
    part = SumPart(client, expected.accept(request.terms), expected.roster, template)
    reservation = releaser.budget.reserve_counts_in_sums(run.config, run.run) if rho else None
    select = (ZerosOnFailure(lambda: Update(template)),) if reservation else ()
    chain = UpdateChain(select, ForSum(part, reservation, releaser.generator))

    def counts() -> Update:
        packed = statistics.pack(learner.counts(), template)
        return Update(statistics.bound(packed) if rho else packed)

    released = chain(counts)
    store.write(run.run, COUNTS, save(statistics.label(released.client_part, 0.0)))
    return CountsReply({}, masked=released.masked, sealed=released.sealed)


def with_own_part(run: EnrolledRun, store: Store, statics: Arrays) -> Arrays:
    """Return noised sums with this client's part of them, `NAME_own`, if it is in the sums."""
    sent = store.read(run.run, COUNTS)
    return {**statics, **{f"{name}_own": a for name, a in load(sent).items()}} if sent else statics


METRICS_CHANNEL = "evaluate"
"""Channel of the sums of metrics.

Its numbers are those of evaluations, and 0 for the only one with noise.
"""


def upload_metrics(
    client: str, run: EnrolledRun, releaser: Releaser, request: EvaluateRequest, measure: Callable[[], EvaluateReply]
) -> EvaluateReply:
    """Return a client's masked metrics.

    Raises:
        WireError: The terms of the sum are malformed.
        RefusedError: The terms are not acceptable, the model is not final in a run with noise, or a limit is exceeded.
    """
    rho = run.config.metric_cost
    if run.helpers is None or (rho and not request.final):
        raise RefusedError("the run's configuration does not announce sums of metrics of this model")
    metrics = summed_metrics(TASKS[run.config.task], noised=rho > 0)
    expected = ExpectedSum(
        run=run.run,
        round=0 if rho else SumTerms.from_json(request.terms).round,
        channel=METRICS_CHANNEL,
        roster=_roster(run),
        min_sum=releaser.policy.min_sum,
        template=metrics.template,
        rho=rho,
        clip=metrics.clip,
        sign="positive" if rho else "signed",
    )
    part = SumPart(client, expected.accept(request.terms), expected.roster, metrics.template)
    reservation = releaser.budget.reserve_metrics_in_sums(run.config, run.run) if rho else None
    select = (ZerosOnFailure(lambda: Update(metrics.template)),) if reservation else ()
    chain = UpdateChain(select, ForSum(part, reservation, releaser.generator))

    def values() -> Update:
        reply = measure()
        return Update(metrics.pack(reply.metrics, reply.weights, reply.paired))

    released = chain(values)
    head = reservation.head if reservation else ""
    return EvaluateReply(request.round, {}, {}, masked=released.masked, sealed=released.sealed, ledger=head)
