"""Names that a client adds to a sum before the first round."""

import logging

from client.enrolment import NamesRun
from client.privacy.release import Releaser
from client.privacy.transforms import Plaintext, Update, UpdateChain
from common.arrays import Arrays
from common.errors import RefusedError
from common.tasks.names import LONGEST, NameSum, admissible
from common.tasks.vocabulary import FEDERATED, entry_text
from common.text import printable
from common.wire.messages import NamesRequest

log = logging.getLogger("fedloom.client")


def names_part(run: NamesRun, sums: NameSum) -> Arrays:
    """Return what this client adds to a sum of names; its log says how many these are."""
    names = [entry_text(entry) for entry in run.vocabulary.entries()]
    used = admissible(run.run, names, sums.most)
    if not sums.frequent and len(used) < len(names):
        text = "%d of %d names are left out of the common vocabulary: at most %d of at most %d bytes are used"
        log.warning(text, len(names) - len(used), len(names), sums.most, LONGEST)
    name, sent = printable(run.run), len(sums.sent(used))
    if sums.frequent:
        log.info(
            "run %s: %d of %d names in the data are sent, whose hash buckets enough clients have", name, sent, len(used)
        )
    else:
        log.info("run %s: hashes of %d names in the data are sent", name, sent)
    return sums.part(used)


def check_names(run: NamesRun, releaser: Releaser) -> None:
    """Check that the run announces sums of names and the owner allows them.

    Raises:
        RefusedError: It does not, or it has noise that such sums lack.
    """
    if run.config.catalogue != FEDERATED or (run.config.privacy.unit != "none" and not run.config.name_noise):
        raise RefusedError("the run's configuration does not announce sums of names; set catalogue=federated")
    releaser.policy.check_vocabulary(summed=run.helpers is not None)


def release_names(run: NamesRun, releaser: Releaser, request: NamesRequest) -> Arrays:
    """Return the client's part of a sum of names in plaintext.

    Raises:
        WireError: The request is malformed.
        RefusedError: The policy or the run does not allow it.
    """
    check_names(run, releaser)
    sums = NameSum.of_request(run.run, request.frequent)
    return UpdateChain((), Plaintext())(lambda: Update(names_part(run, sums))).arrays
