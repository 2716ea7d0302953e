"""Part of a client in the sums by which the clients of a run find their vocabulary."""

import logging

from client.enrolment import NamesRun
from client.privacy.release import Releaser
from client.privacy.transforms import Plaintext, Update, UpdateChain
from common.arrays import Arrays
from common.errors import RefusedError
from common.tasks.names import LONGEST, MOST_NAMES, NameSum, admissible
from common.tasks.vocabulary import FEDERATED, entry_text
from common.text import printable
from common.wire.messages import CountsRequest

log = logging.getLogger("fedloom.client")


def own_part(run: NamesRun, sums: NameSum) -> Arrays:
    """Return what this client adds to a sum of names; its log says how many these are."""
    names = [entry_text(entry) for entry in run.vocabulary.entries()]
    used = admissible(run.run, names)
    if not sums.frequent and len(used) < len(names):
        text = "%d of %d names are left out of the common vocabulary: at most %d of at most %d bytes are used"
        log.warning(text, len(names) - len(used), len(names), MOST_NAMES, LONGEST)
    about = printable(run.run), len(used)
    if not sums.frequent:
        log.info("run %s: hashes of %d names in the data are added to those of other clients", *about)
    else:
        log.info("run %s: names in the data are sent, of %d those in buckets that enough clients have", *about)
    return sums.part(used)


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
    return UpdateChain((), Plaintext())(lambda: Update(own_part(run, sums))).arrays
