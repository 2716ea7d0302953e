"""Property of a template of Table 1, inferred or mined from a sensor's judged days (§3.2, §3.3)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from common.arrays import Arrays, Floats
from common.logic import inference
from common.logic import inference as properties
from common.logic.formula import Formula, conjunction
from common.logic.inference import Property
from common.logic.mining import MinedProperty, mine
from common.logic.parser import is_plannable
from common.logic.templates import Window, windows
from common.tasks.traffic.options import TrafficOptions, compared_variables
from common.tasks.traffic.properties import PAIRED, STRUCTURE, TEMPLATE, VARIABLES, WINDOWS
from common.tasks.traffic.vocabulary import SensorVariables

Build = Callable[[Sequence[str], Sequence[Window], Mapping[str, Tensor]], Property]

BUILD: Mapping[int, Build] = {
    1: lambda v, over, p: properties.OperationalRange(v[0], tuple(over), p["upper"], p["lower"]),
    2: lambda v, over, p: properties.Existence(v[0], tuple(over), p["upper"], p["lower"]),
    3: lambda v, over, p: properties.HeldUntil(v[0], tuple(over), p["held"], p["met"]),
    4: lambda v, over, p: properties.IntraTask(v[0], v[1], tuple(over), p["bound"]),
    5: lambda v, over, p: properties.Response(v[0], v[0], over[0], over[1], p["trigger"], p["response"]),
    6: lambda v, over, p: properties.Response(v[0], v[1], over[0], over[1], p["trigger"], p["response"]),
    7: lambda v, over, p: properties.Eventualities(v[0], tuple(over), p["bound"]),
}
"""Template -> function of variables, windows and parameters to the property."""

OF_WINDOWS: Mapping[str, tuple[int, Callable[[Tensor, Sequence[Window], str], Property]]] = {
    "existence": (2, inference.infer_existence),
    "until": (3, inference.infer_until),
    "eventualities": (7, inference.infer_eventualities),
}
"""Kind of property -> its template and its inference."""


@dataclass(frozen=True, eq=False)
class TemplateProperty:
    """Template with its parameters, in standard deviations.

    Args:
        arrays: Arrays of a message: template, windows, variables and parameters.
    """

    arrays: Arrays

    def formula(self, names: Sequence[str]) -> "Formula | None":
        """Return the conjunction over variables; None if no part restricts the data."""
        template, chosen = int(self.arrays[TEMPLATE][0]), [names[k] for k in self.arrays[VARIABLES]]
        over = [(int(i), int(j)) for i, j in self.arrays[WINDOWS]]
        values = {n: torch.from_numpy(a) for n, a in self.arrays.items() if n not in STRUCTURE}
        rows = [chosen] if template in PAIRED else [[name] for name in chosen]
        parts = [BUILD[template](row, over, {n: a[k] for n, a in values.items()}) for k, row in enumerate(rows)]
        restricting = [part.formula() for part in parts if not bool(part.vacuous)]
        return conjunction(restricting) if restricting else None


def infer_property(days: Floats, variables: SensorVariables, options: TrafficOptions) -> TemplateProperty | None:
    """Infer the property of the option `property`, variable by variable, or mine the tightest one.

    Args:
        days: Judged days, S × P × D in standard deviations.
        variables: Vocabulary of the run.
        options: Options of the task.

    Returns:
        The property; None if mining finds none, as for constant readings.

    Raises:
        ConfigError: The vocabulary lacks the two variables of `nested`.
    """
    traces, names = torch.from_numpy(np.ascontiguousarray(days)), variables.variables
    if options.property == "mined":
        return next((of_mined(found, names) for found in mine(traces, names) if is_plannable(found.formula)), None)
    steps, width, level = traces.shape[1], options.window_width, options.trigger_quantile
    columns = traces.unbind(-1)
    if options.property in OF_WINDOWS:
        template, infer = OF_WINDOWS[options.property]
        over = windows(steps, width)
        return _to_template(template, over, range(len(columns)), [infer(x, over, "") for x in columns])
    span, delay = (0, steps - 1 - width), (1, width)
    if options.property == "nested":
        pair = compared_variables(options, variables)
        x1, x2 = (columns[k] for k in pair)
        found = [inference.infer_nested(x1, x2, span, delay, "", "", level)]
        return _to_template(6, (span, delay), pair, found)
    found = [inference.infer_implication(x, span, delay, "", level) for x in columns]
    return _to_template(5, (span, delay), range(len(columns)), found)


def of_mined(mined: MinedProperty, names: Sequence[str]) -> TemplateProperty:
    """Return a mined property as arrays."""
    inferred = mined.inferred
    chosen = [getattr(inferred, key) for key in ("variable", "first", "second") if hasattr(inferred, key)]
    over: Sequence[Window] = getattr(inferred, "over", None) or [getattr(inferred, name) for name in ("span", "delay")]
    variables = [names.index(name) for name in dict.fromkeys(chosen)]
    return _to_template(mined.template, over, variables, [inferred])


def _to_template(
    template: int, over: Sequence[Window], variables: Sequence[int], parts: Sequence[Property]
) -> TemplateProperty:
    names = parts[0].weaker_up + parts[0].weaker_down
    values = {n: torch.stack([getattr(part, n) for part in parts]).double().numpy() for n in names}
    structure = {TEMPLATE: np.array([template]), WINDOWS: np.array(over), VARIABLES: np.array(list(variables))}
    return TemplateProperty({**structure, **values})
