"""Parameters of an inferred template as arrays of messages: check and pooling (§3.2, §3.7). NumPy."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from common.arrays import Arrays
from common.errors import WireError

WEAKER_UP, WEAKER_DOWN = ("upper", "held", "met", "trigger"), ("lower", "bound", "response")
"""Parameters that weaken a formula as they grow, and as they fall; a row for each variable, n × W."""

STRUCTURE = TEMPLATE, WINDOWS, VARIABLES = "template", "windows", "variables"
"""Names of the template's number, of its windows, W × 2, and of indices of variables."""

PARAMETERS: Mapping[int, frozenset[str]] = {
    1: frozenset({"upper", "lower"}),
    2: frozenset({"upper", "lower"}),
    3: frozenset({"held", "met"}),
    4: frozenset({"bound"}),
    5: frozenset({"trigger", "response"}),
    6: frozenset({"trigger", "response"}),
    7: frozenset({"bound"}),
}
"""Template of Table 1 -> its parameters. The windows of 5 and 6 are the trigger's span and the delay."""

NAMES = (*STRUCTURE, *WEAKER_UP, *WEAKER_DOWN)
"""Names of all arrays of a property of a template."""

PAIRED = (4, 6)
"""Templates of two variables."""


def check_parameters(arrays: Arrays, horizon: int, *, with_structure: bool) -> None:
    """Check a property of a template; without noise it names its structure.

    Raises:
        WireError: Names, shapes or numbers are not those of such a property for forecasts of `horizon` steps.
    """
    values = {name: a for name, a in arrays.items() if name not in STRUCTURE}
    if frozenset(values) not in PARAMETERS.values() or with_structure != (arrays.keys() >= set(STRUCTURE)):
        raise WireError(f"property has unknown parameters: {', '.join(sorted(arrays))[:80]}")
    shape = next(iter(values.values())).shape
    if len(shape) != 2 or 0 in shape or any(a.shape != shape or a.dtype.kind != "f" for a in values.values()):
        raise WireError("parameters of the property are not numbers by variable and window")
    if any(np.isnan(a).any() or (name != "response" and np.isinf(a).any()) for name, a in values.items()):
        raise WireError("parameters of the property are non-finite")
    if with_structure:
        _check_structure(arrays, frozenset(values), shape, horizon)


def _check_structure(arrays: Arrays, values: frozenset[str], shape: tuple[int, ...], horizon: int) -> None:
    template, windows, variables = (arrays[name] for name in STRUCTURE)
    if any(a.dtype.kind not in "iu" for a in (template, windows, variables)) or template.shape != (1,):
        raise WireError("template, windows and variables of the property are not whole numbers")
    if PARAMETERS.get(int(template[0])) != values:
        raise WireError(f"property of template {int(template[0])} has parameters of another one")
    is_response = "trigger" in values
    if windows.shape != (2 if is_response else shape[1], 2) or shape[1] > horizon:
        raise WireError("windows of the property do not match its parameters")
    reach = windows.sum(axis=0).max() if is_response else windows.max()
    if windows.min() < 0 or (windows[:, 0] > windows[:, 1]).any() or reach >= horizon:
        raise WireError(f"windows of the property are outside the {horizon} steps of a forecast")
    rows = 1 if int(template[0]) in PAIRED else shape[0]
    if variables.shape != (2 if int(template[0]) in PAIRED else shape[0],) or variables.min() < 0 or rows != shape[0]:
        raise WireError("variables of the property do not match its parameters")


def pool_parameters(members: Sequence[Arrays]) -> Arrays:
    """Return the strongest property that no member's parameters exclude; empty without members.

    Members of another structure than the most common one are left out. For templates 1, 4 and 7 the result equals
    inference on the members' pooled data; for the others it takes the weakest of every parameter.
    """
    if not members:
        return {}
    keys = [_structure(member) for member in members]
    common = Counter(keys).most_common(1)[0][0]
    fitting = [member for member, key in zip(members, keys, strict=True) if key == common]
    pooled = {name: a for name, a in fitting[0].items() if name in STRUCTURE}
    for names, weakest in ((WEAKER_UP, np.max), (WEAKER_DOWN, np.min)):
        pooled |= {n: weakest([member[n] for member in fitting], axis=0) for n in names if n in fitting[0]}
    return pooled


def is_alike(one: Arrays, other: Arrays) -> bool:
    """Return True if two properties have one structure and parameters of one shape."""
    return _structure(one) == _structure(other)


def _structure(arrays: Arrays) -> tuple[tuple[str, object], ...]:
    return tuple((n, tuple(a.ravel().tolist()) if n in STRUCTURE else a.shape) for n, a in sorted(arrays.items()))


def templates_of(memory: Mapping[str, Arrays], clients: Iterable[str]) -> dict[str, Arrays]:
    """Return client -> its property, from name -> client -> array; clients without one are left out."""
    found = {client: {n: memory[n][client] for n in NAMES if client in memory.get(n, {})} for client in clients}
    return {client: arrays for client, arrays in found.items() if arrays}
