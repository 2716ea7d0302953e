"""Counts and names that a client adds to sums before the first round, and counts without its own."""

import logging

from safetensors.numpy import load, save

from client.enrolment import EnrolledRun, NamesRun
from client.privacy.release import Releaser
from client.privacy.transforms import Plaintext, Update, UpdateChain
from client.state import Store
from client.tasks.learner import ExcludesOwnCounts, HasCounts, PrivatizesCounts
from common.arrays import Arrays
from common.errors import RefusedError
from common.tasks.names import HASHES, LONGEST, MOST_NAMES, VALUES, NameSum, admissible
from common.tasks.registry import TASKS
from common.tasks.vocabulary import FEDERATED, entry_text
from common.text import printable
from common.wire.messages import CountsRequest

log = logging.getLogger("fedloom.client")

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


def names_part(run: NamesRun, sums: NameSum) -> Arrays:
    """Return what this client adds to a sum of names; its log says how many these are."""
    names = [entry_text(entry) for entry in run.vocabulary.entries()]
    used = admissible(run.run, names)
    if not sums.frequent and len(used) < len(names):
        text = "%d of %d names are left out of the common vocabulary: at most %d of at most %d bytes are used"
        log.warning(text, len(names) - len(used), len(names), MOST_NAMES, LONGEST)
    name, part = printable(run.run), sums.part(used)
    if sums.frequent:
        sent = int(part[VALUES][:, 0].sum()) // HASHES
        log.info(
            "run %s: %d of %d names in the data are sent, whose hash buckets enough clients have", name, sent, len(used)
        )
    else:
        log.info("run %s: hashes of %d names in the data are sent", name, len(used))
    return part


def check_names(run: NamesRun, releaser: Releaser) -> None:
    """Check that the run announces sums of names and the owner allows them.

    Raises:
        RefusedError: It does not, or it has noise, which such sums lack.
    """
    if run.config.catalogue != FEDERATED or run.config.privacy.unit != "none":
        raise RefusedError("the run's configuration does not announce sums of names; set catalogue=federated")
    releaser.policy.check_vocabulary(summed=run.helpers is not None)


def release_names(run: NamesRun, releaser: Releaser, request: CountsRequest) -> Arrays:
    """Return the client's part of a sum of names in plaintext.

    Raises:
        WireError: The request is malformed.
        RefusedError: The policy or the run does not allow it.
    """
    check_names(run, releaser)
    sums = NameSum.of_request(run.run, request.frequent)
    return UpdateChain((), Plaintext())(lambda: Update(names_part(run, sums))).arrays
