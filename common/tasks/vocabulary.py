"""Vocabulary: public names that server and clients agree on before training."""

import hashlib
import json
from collections.abc import Sequence
from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError

from common.errors import DataError


class Vocabulary(BaseModel):
    """Lists of names; the position of a name is its index in the model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def to_json(self) -> str:
        """Return canonical JSON: equal vocabularies give equal texts."""
        return json.dumps(self.model_dump(mode="json"), ensure_ascii=False, indent=0, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the vocabulary of a text by `to_json`.

        Raises:
            DataError: The text is not a vocabulary of this class.
        """
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            raise DataError(f"not a vocabulary of {cls.noun()}: {place} {first['msg']}") from None

    def sha256(self) -> str:
        """Return the SHA-256 of the canonical JSON, hexadecimal."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @classmethod
    def noun(cls) -> str:
        """Return the noun of the names, for messages."""
        return " and ".join(name.replace("_", " ") for name in cls.model_fields)


def check_names(noun: str, names: Sequence[str]) -> None:
    """Check names of a vocabulary.

    Args:
        noun: Noun with article, such as `an item`, for messages.
        names: Names to check.

    Raises:
        ValueError: A name is listed twice or is empty.
    """
    if len(set(names)) < len(names):
        raise ValueError(f"{noun} is listed twice")
    if "" in names:
        raise ValueError(f"{noun} has no name")
