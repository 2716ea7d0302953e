"""Texts on the guarantee of a run's secure sums."""

from collections.abc import Sequence

from common.privacy.options import PrivacyOptions

SUM_GUARANTEE = (
    "noise on sums of at least {min_sum} clients: (ε = {epsilon:g}, δ = {delta:g}) for any two contents of this client's data,"
    " against the server, all other clients and all helpers but one, if at least one of {pinned} followed the protocol and kept"
    " its key"
)
"""Guarantee of secure sums with noise."""

FIRST_CONTACT = (
    "; keys of {names} were taken from the server at first contact: a server that lied then is covered by nothing"
)
"""Addition to both guarantees, where the owner pinned no keys."""

MASKS_ALONE = (
    "masked sums of at least {min_sum} clients, no noise: single updates are hidden from a server that enrols no clients of its"
    " own and from all helpers but one; what sums reveal is not bounded"
)
"""Guarantee of secure sums without noise."""

PER_CLUSTER = "; the sum has a part for each cluster, which may be that of one client, but does not say of which"
"""Addition to the guarantee without noise, in methods whose clients choose a cluster."""


def describe_sums(
    options: PrivacyOptions,
    min_sum: int,
    pinned: Sequence[str],
    first_contact: Sequence[str] = (),
    *,
    has_clusters: bool = False,
) -> str:
    """Return the guarantee of a run's secure sums.

    Args:
        options: Options of the run.
        min_sum: Minimum number of clients in a sum.
        pinned: Names of the helpers that the guarantee relies on.
        first_contact: Names of those whose keys came from the server.
        has_clusters: True if sums have a part for each cluster of clients.
    """
    is_exact = options.unit == "none"
    text = MASKS_ALONE + (PER_CLUSTER if has_clusters else "") if is_exact else SUM_GUARANTEE
    added = FIRST_CONTACT.format(names=", ".join(first_contact)) if first_contact else ""
    return text.format(min_sum=min_sum, pinned=", ".join(pinned), **options.model_dump()) + added
