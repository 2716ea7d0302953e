"""Form of the numbers in uploads, as server and clients agree on it. Pure."""

from dataclasses import dataclass
from typing import Literal

Encoding = Literal["float32", "float16", "int8", "top-k"]
"""Name of a form."""


@dataclass(frozen=True)
class Form:
    """Form of the numbers in uploads.

    Args:
        encoding: Name of the form.
        keep: Share of the numbers of each array that `top-k` sends.
    """

    encoding: Encoding = "float32"
    keep: float = 1.0
