"""Signal temporal logic (STL) on tensors: formulas, robustness, inference, mining and projection.

Public names; docs/temporal-logic.md shows each in use:

- `formula`: `Variable`, `Atom`, `Not`, `And`, `Or`, `Implies`, `Always`, `Eventually`, `Until`, `conjunction`, `horizon`
- `parse`: `parse`, the inverse of `str`, and `locate`
- `diagnosis`: `read_formula`, which refuses formulas of users with the place of the fault
- `rescale`: `rescaled`, for traces in standard deviations
- `semantics`: `robustness`, `satisfied`
- `templates`: `windows` and one function per template of FedSTL, Table 1
- `inference`: `infer_operational_range`, `infer_existence`, `infer_until`, `infer_intra_task`, `infer_implication`,
  `infer_nested`, `infer_eventualities`
- `properties`: the classes that inference returns, with `formula()`
- `mining`: `mine`, `MinedProperty`
- `teacher`: `Teacher`
- `projections`: `clamp`, `separate`, `property_loss`

The traffic task uses closed forms for ranges on the clock (`common.tasks.traffic.ranges`), and this package for formulas that
users write. Tests compare the closed forms with the general case here.
"""
