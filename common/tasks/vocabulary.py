"""The public names a federation agrees on before it trains; each task has its own."""

import hashlib
import json
from collections.abc import Sequence
from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError

from common.errors import DataError


class Vocabulary(BaseModel):
    """Lists of names; a name's place is its index in the model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def to_json(self) -> str:
        """Canonical JSON: equal vocabularies give equal texts."""
        return json.dumps(self.model_dump(mode="json"), ensure_ascii=False, indent=0, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Inverse of `to_json`.

        Raises:
            DataError: Not a vocabulary of this kind.
        """
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            raise DataError(f"not a catalogue of {cls.what()}: {place} {first['msg']}") from None

    def sha256(self) -> str:
        """Fingerprint of all names and their order."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @classmethod
    def what(cls) -> str:
        """What the names name, for error texts."""
        return " and ".join(name.replace("_", " ") for name in cls.model_fields)


def check_names(what: str, names: Sequence[str]) -> None:
    """Accept the names of what is called so, `an item`.

    Raises:
        ValueError: One is listed twice, or empty.
    """
    if len(set(names)) < len(names):
        raise ValueError(f"{what} is listed twice")
    if "" in names:
        raise ValueError(f"{what} has no name")
