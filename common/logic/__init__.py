"""Signal temporal logic (STL) on tensors: formulas, robustness, inference, mining and projection.

Public names; docs/temporal-logic.md shows each in use:

- `formula`: `Variable`, `Atom`, `Not`, `And`, `Or`, `Implies`, `Always`, `Eventually`, `Until`, `conjunction`, `horizon`
- `formula` also has `rescaled`, for traces in standard deviations
- `parser`: `parse`, the inverse of `str`, and `read_formula`, which refuses formulas of users with the place of the fault
- `semantics`: `robustness`, `satisfied`
- `inference`: `windows`, one function per template of FedSTL, Table 1, and `infer_operational_range`, `infer_existence`,
  `infer_until`, `infer_intra_task`, `infer_implication`, `infer_nested`, `infer_eventualities`, which return a `Property`
- `mining`: `mine`, `MinedProperty`
- `projection`: `Teacher`, `clamp`, `separate`, `property_loss`

The traffic task uses closed forms for ranges on the clock (`common.tasks.traffic.properties`), and this package for
formulas that users write. Tests compare the closed forms with the general case here.
"""
