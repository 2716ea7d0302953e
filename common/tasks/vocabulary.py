"""Vocabulary: public names that server and clients agree on before training; names of demo products."""

import hashlib
import json
from collections.abc import Collection, Sequence
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from common.errors import DataError
from common.text import one_name

FEDERATED = "federated"
"""Vocabulary that the clients of a run find before its first round."""

Entry = tuple[Any, ...]
"""Field of a vocabulary, a key in it where it has keys, and a name."""


class Vocabulary(BaseModel):
    """Lists of names; the position of a name is its index in the model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _of_one_form(cls, values: Any) -> Any:
        return _with_one_name(values)

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
            location = ".".join(str(part) for part in first["loc"])
            raise DataError(f"not a vocabulary of {cls.noun()}: {location} {first['msg']}") from None

    def sha256(self) -> str:
        """Return the SHA-256 of the canonical JSON, hexadecimal."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def extended(self, other: Self) -> Self:
        """Return this vocabulary with the names that another one adds behind its own, whose indices stay.

        Raises:
            DataError: They differ in more than names.
        """
        return type(self).model_validate(
            {field: self._extend(field, getattr(self, field), other) for field in type(self).model_fields}
        )

    def _extend(self, field: str, values: Any, other: Self) -> Any:
        """Return the values of a field with those that another vocabulary adds; lists of names grow.

        Raises:
            DataError: Other values have to be equal.
        """
        added = getattr(other, field)
        if isinstance(values, tuple):
            present = set(values)
            return (*values, *(name for name in added if name not in present))
        if values != added:
            raise DataError(f"vocabularies of {self.noun()} differ in {field}: {values} and {added}")
        return values

    @classmethod
    def noun(cls) -> str:
        """Return the noun of the names, for messages."""
        return " and ".join(name.replace("_", " ") for name in cls.model_fields)

    is_listed: ClassVar[bool] = True
    """True if names alone make the vocabulary, so that clients can find it together."""

    def entries(self) -> list[Entry]:
        """Return the names one by one, each with its field and, in a field with keys, its key.

        Raises:
            DataError: A field is neither a list nor has keys; its class needs methods of its own.
        """
        found: list[Entry] = []
        for field, listed in self.model_dump(mode="json").items():
            if not isinstance(listed, list | dict):
                raise DataError(f"field '{field}' lists no names, so clients cannot find it; name a file (--catalogue)")
            for key, names in listed.items() if isinstance(listed, dict) else [(None, listed)]:
                found += [(field, name) if key is None else (field, key, name) for name in names]
        return found

    @classmethod
    def from_entries(cls, entries: Collection[Entry]) -> Self:
        """Return the vocabulary of these entries, in alphabetical order; the inverse of `entries`.

        Raises:
            DataError: They make no vocabulary of this class.
        """
        fields: dict[str, Any] = {name: [] for name, field in cls.model_fields.items() if field.is_required()}
        for field, *keys, name in sorted(entries, key=str):
            if keys:
                fields.setdefault(field, {}).setdefault(keys[0], []).append(name)
            else:
                fields.setdefault(field, []).append(name)
        return cls.from_json(json.dumps(fields))


def _with_one_name(value: Any) -> Any:
    """Return a value with its texts as names in their one form."""
    match value:
        case str():
            return one_name(value)
        case list() | tuple():
            return type(value)(map(_with_one_name, value))
        case dict():
            return {_with_one_name(key): _with_one_name(held) for key, held in value.items()}
    return value


def entry_text(entry: Entry) -> str:
    """Return an entry as JSON, by which clients compare their names."""
    return json.dumps(entry, ensure_ascii=False, separators=(",", ":"))


def check_names(noun: str, names: Sequence[str]) -> None:
    """Check names of a vocabulary.

    Raises:
        ValueError: A name is listed twice or is empty.
    """
    if len(set(names)) < len(names):
        raise ValueError(f"{noun} is listed twice")
    if "" in names:
        raise ValueError(f"{noun} has no name")


SHELVES: dict[str, tuple[str, str]] = {
    "coffee": (
        "steel, travel, glass, Italian",
        "espresso pot, coffee grinder, milk frother, coffee scale, cup set, filter",
    ),
    "tea": ("cast-iron, porcelain, Japanese, herbal", "teapot, tea tin, tea strainer, teacup, tea sampler, kettle"),
    "baking": (
        "silicone, wooden, large, enamel",
        "cake tin, rolling pin, mixing bowl, whisk, cookie cutter, proofing basket",
    ),
    "garden": (
        "folding, copper, long-handled, children's",
        "watering can, hand trowel, pruning shears, rake, seed tray, hoe",
    ),
    "camping": (
        "two-person, ultralight, winter, family",
        "tent, sleeping bag, camp stove, head torch, rain cover, ground mat",
    ),
    "fishing": ("fly, sea, carp, telescopic", "fishing rod, fishing reel, line spool, lure box, landing net, waders"),
    "cycling": ("city, mountain, racing, electric", "bicycle helmet, bike lock, saddle, pannier, tyre set, bike light"),
    "running": ("trail, road, winter, reflective", "running shoes, running vest, running socks, hip belt, shorts, cap"),
    "photography": ("compact, wide-angle, carbon, waterproof", "camera, lens, tripod, camera bag, filter kit, flash"),
    "painting": ("oil, watercolour, acrylic, student", "paint set, brush set, canvas pad, easel, palette, varnish"),
    "sewing": ("cotton, linen, denim, silk", "fabric roll, thread set, dress pattern, ribbon, button box, patch kit"),
    "music": (
        "acoustic, electric, bass, beginner's",
        "guitar, guitar strings, guitar strap, tuner, plectrum set, amplifier",
    ),
    "board games": (
        "cooperative, travel, strategy, party",
        "board game, card game, dice set, puzzle, quiz box, score pad",
    ),
    "baby": ("organic, padded, knitted, first", "baby blanket, baby carrier, bib set, night light, bath towel, rattle"),
    "dogs": (
        "puppy, large-breed, reflective, leather",
        "dog collar, dog lead, dog bed, chew toy, feeding bowl, dog coat",
    ),
    "aquarium": (
        "tropical, nano, saltwater, planted",
        "fish tank, tank heater, water pump, gravel bag, fish food, lamp",
    ),
    "office": ("standing, ergonomic, oak, compact", "desk, desk chair, monitor arm, desk lamp, footrest, drawer unit"),
    "smart home": ("wireless, outdoor, indoor, solar", "doorbell, motion detector, smart bulb, thermostat, siren, hub"),
}
"""Shelf -> kinds, things; each combination of both is an item."""
