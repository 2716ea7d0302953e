"""Mutations of fields of payloads."""

import os
import random
from collections.abc import Callable
from typing import Any

TIMES = int(os.environ.get("FEDLOOM_MUTATIONS", "1"))
"""Factor on the number of mutations: 1 tries 20,000 of messages of secure sums, 2 tries 40,000."""

DTYPES = ("<u4", "<u8", "<i8", "<f4", "<f8", "?")

MUTATIONS: tuple[Callable[[random.Random, str], str], ...] = (
    lambda r, text: text[: r.randrange(len(text) + 1)],
    lambda r, text: text[: (n := r.randrange(len(text) + 1))] + chr(r.randrange(0x20, 0x2FF)) + text[n + 1 :],
    lambda r, text: text.replace(str(r.randrange(10)), str(r.randrange(10**6)), 1),
    lambda r, text: text.replace('"', r.choice(["", "'", "\x00", "[", "1e999"]), 1),
    lambda r, text: text + text[-r.randrange(1, 40) :],
    lambda r, text: "",
)


def mutated(chance: random.Random, value: Any) -> Any:
    """Return a value of the same type with one change."""
    if isinstance(value, str):
        return chance.choice(MUTATIONS)(chance, value)
    if isinstance(value, bool):
        return False
    if isinstance(value, float):
        return chance.choice([-1.0, float("nan"), float("inf")])
    if isinstance(value, int):
        return chance.choice([-1, 0, value + 1, 2**31, 2**62])
    if isinstance(value, dict):
        changes = (
            lambda array: array[1:],
            lambda array: array.astype(chance.choice(DTYPES)),
            lambda array: array[None],
        )
        return chance.choice([{}, {name: chance.choice(changes)(array) for name, array in value.items()}])
    changed = list(value)
    if not changed:
        return ["A" * chance.randrange(200)]
    place = chance.randrange(len(changed))
    match chance.randrange(4):
        case 0:
            del changed[place]
        case 1:
            changed.insert(place, changed[place])
        case 2:
            chance.shuffle(changed)
        case _:
            changed[place] = mutated(chance, changed[place])
    return changed
