"""Texts of faults in a policy file."""

import re
from typing import get_args

from pydantic import BaseModel, ValidationError

from common.options import kebab
from common.privacy.options import Unit
from common.text import meant


def explain(error: ValidationError, policy: type[BaseModel]) -> str:
    """Return the message about the first invalid option, with the closest valid one."""
    first = error.errors()[0]
    place = first["loc"]
    if first["type"] == "extra_forbidden":
        return f"unknown option '{place[-1]}'{meant(str(place[-1]), map(kebab, policy.model_fields))}"
    if first["type"] == "literal_error" and place[0] == "units":
        unit = str(first.get("input"))
        return f"'units': unknown '{unit}'{meant(unit, get_args(Unit))}"
    return f"'{'.'.join(map(str, place))}': {first['msg'].removeprefix('Value error, ')}"


def line_of(key: str, text: str) -> str:
    """Return the place of a key in a TOML text: `, line 3`; empty if the key is not found."""
    for number, line in enumerate(text.splitlines(), start=1):
        if re.match(rf"""\s*(\[+\s*)?["']?{re.escape(key)}["']?\s*[\].=]""", line):
            return f", line {number}"
    return ""
