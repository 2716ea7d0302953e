"""Signal temporal logic: formulas, robustness, inference of properties, and the teacher that makes forecasts obey.

Clients train and forecast by ranges on the clock, whose inference and teacher have closed forms of their own in
`common.tasks.traffic.ranges`; of this package they need `projections`, which imports `clauses` and `formula`, and `margin`;
reports write ranges as a `formula`. The rest is the paper's general case: what those closed forms are tested against, and what
`benchmarks.teacher`, `benchmarks.stl_inference` and `benchmarks.stl_robustness` measure.
"""
