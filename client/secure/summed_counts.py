"""Counts of a client in a secure sum."""

from safetensors.numpy import load, save

from client.enrolment import EnrolledRun
from client.privacy.release import Releaser
from client.privacy.transforms import Update, UpdateChain
from client.secure.accept_terms import ExpectedSum
from client.secure.upload import ForSum, SumPart
from client.state import Store
from client.tasks.counts import COUNTS
from client.tasks.learner import HasCounts
from client.training.failures import ZerosOnFailure
from common.arrays import Arrays
from common.config.secure_sums import count_cost
from common.errors import RefusedError
from common.tasks.registry import TASKS
from common.wire.messages import CountsReply, CountsRequest

CHANNEL = "counts"
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
    rho = count_cost(run.config)
    if not rho:
        releaser.policy.check_counts(summed=True)
    template = statistics.template(run.config.task_options, run.vocabulary)
    expected = ExpectedSum(
        run=run.run,
        round=0,
        channel=CHANNEL,
        roster=run.helpers.roster,
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
    store.write(run.run, COUNTS, save(statistics.label(released.own, 0.0)))
    return CountsReply({}, masked=released.masked, sealed=released.sealed)


def with_own_part(run: EnrolledRun, store: Store, statics: Arrays) -> Arrays:
    """Return noised sums with this client's part of them, `NAME_own`, if it is in the sums."""
    sent = store.read(run.run, COUNTS)
    return {**statics, **{f"{name}_own": a for name, a in load(sent).items()}} if sent and statics else statics
