"""Statistics that a client adds to the sums of a run, and the sums without them."""

from safetensors.numpy import load, save

from client.enrolment import EnrolledRun
from client.privacy.release import Releaser
from client.privacy.transforms import Plaintext, Update, UpdateChain
from client.state import Store
from client.tasks.learner import ExcludesOwnCounts, HasCounts, PrivatizesCounts
from common.arrays import Arrays
from common.errors import RefusedError
from common.tasks.registry import TASKS

COUNTS = "counts.safetensors"
"""Name of the document in a run's state: the counts that were sent."""


def release_counts(run: EnrolledRun, releaser: Releaser, store: Store) -> Arrays:
    """Return and store the client's counts: with noise, or in plaintext if the policy allows it.

    Raises:
        RefusedError: The policy, the run or its task does not allow such counts, or the cost exceeds a limit.
    """
    learner, noisy = run.learner, run.config.task_options.count_privacy.unit != "none"
    if not noisy:
        releaser.policy.check_counts(summed=False)
    if run.config.privacy.unit != "none":
        raise RefusedError(
            "noise on updates does not cover counts; leave count-offset out in runs with privacy.unit set"
        )
    if not run.config.task_options.count_offset or (noisy and not isinstance(learner, PrivatizesCounts)):
        raise RefusedError("the run's configuration does not announce such counts; set count-offset of its task")
    if isinstance(learner, PrivatizesCounts) and noisy:
        counts = releaser.release_counts(run.config, run.run, learner.private_counts)
    elif isinstance(counted := learner, HasCounts):
        counts = UpdateChain((), Plaintext())(lambda: Update(counted.counts())).arrays
    else:
        raise RefusedError(f"task '{run.config.task}' has no counts; leave count-offset out")
    store.write(run.run, COUNTS, save(counts))
    return counts


def without_own_counts(run: EnrolledRun, store: Store, statics: Arrays) -> Arrays:
    """Return the sums over the other clients, for learners that can exclude their own part.

    Every client excludes its own counts from the sums that it trains with. A client whose counts are not in the sums, because
    it joined later, adds them for the other learners.

    Raises:
        RefusedError: The run has noise, and the sums are not among those that the server pools from released values.
    """
    if run.config.privacy.unit != "none" and not statics.keys() <= TASKS[run.config.task].pooled:
        raise RefusedError("the server sends sums over clients, but clients send none in a run with noise")
    learner, sent = run.learner, store.read(run.run, COUNTS)
    if isinstance(learner, ExcludesOwnCounts):
        return learner.without_own(statics, load(sent) if sent else {})
    if sent or not isinstance(learner, HasCounts):
        return statics
    return TASKS[learner.task].add_counts(statics, learner.counts(), run.vocabulary)
