"""Refused combinations of runs whose updates are sent with fewer bytes a number."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from common.config.run import RunConfig


def check_encoding(config: "RunConfig") -> None:
    """Accept the encoding of updates.

    Raises:
        ValueError: The run has noise, secure sums or plaintext items, whose values are sent as they are.
    """
    encoding = config.federation.encoding
    if encoding == "float32":
        return
    if config.privacy.unit != "none":
        raise ValueError(f"federation.encoding={encoding} is for runs without noise; set federation.encoding=float32")
    if config.task_options.named_rows:
        raise ValueError(f"federation.encoding={encoding} does not apply to items in plaintext; set it to float32")
