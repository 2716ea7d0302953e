"""Signal temporal logic: formulas, robustness, inference of properties, and the teacher that makes forecasts obey."""
