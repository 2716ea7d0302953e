"""Traffic forecasts on real sensors: `python -m benchmarks.traffic` writes docs/results/traffic.md."""
