"""Property of a template of Table 1, inferred or mined from a sensor's judged days (§3.2, §3.3)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from torch import Tensor

from common.arrays import Arrays, Floats
from common.logic import inference
from common.logic.formula import Formula, conjunction
from common.logic.inference import Property, Template, Window, windows
from common.logic.mining import MinedProperty, mine
from common.logic.parser import is_plannable
from common.tasks.traffic.options import TrafficOptions, compared_variables
from common.tasks.traffic.properties import PAIRED, STRUCTURE, TEMPLATE, VARIABLES, WINDOWS
from common.tasks.traffic.vocabulary import SensorVariables

OF_WINDOWS: Mapping[str, Callable[[Tensor, Sequence[Window], str], Property]] = {
    "existence": inference.infer_existence,
    "until": inference.infer_until,
    "eventualities": inference.infer_eventualities,
}
"""Kind of property -> its inference."""


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
        over = tuple((int(i), int(j)) for i, j in self.arrays[WINDOWS])
        values = {n: torch.from_numpy(a) for n, a in self.arrays.items() if n not in STRUCTURE}
        rows = [chosen] if template in PAIRED else [[name] for name in chosen]
        found = [
            Property(cast(Template, template), tuple(row), over, {n: a[k] for n, a in values.items()})
            for k, row in enumerate(rows)
        ]
        restricting = [one.formula() for one in found if not bool(one.vacuous)]
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
        over = windows(steps, width)
        return _to_template([OF_WINDOWS[options.property](x, over, "") for x in columns], range(len(columns)))
    span, delay = (0, steps - 1 - width), (1, width)
    if options.property == "nested":
        first, second = compared_variables(options, variables)
        nested = inference.infer_nested(columns[first], columns[second], span, delay, "", "", level)
        return _to_template([nested], (first, second))
    found = [inference.infer_implication(x, span, delay, "", level) for x in columns]
    return _to_template(found, range(len(columns)))


def of_mined(mined: MinedProperty, names: Sequence[str]) -> TemplateProperty:
    """Return a mined property as arrays."""
    return _to_template([mined.inferred], [names.index(name) for name in mined.inferred.variables])


def _to_template(found: Sequence[Property], variables: Sequence[int]) -> TemplateProperty:
    """Return properties of one template, windows and variables as arrays."""
    first = found[0]
    values = {n: torch.stack([one.parameters[n] for one in found]).numpy() for n in first.parameters}
    structure = {TEMPLATE: [first.template], WINDOWS: first.over, VARIABLES: list(variables)}
    return TemplateProperty({**{n: np.array(numbers) for n, numbers in structure.items()}, **values})
