"""Report of runs: report.html, and the texts of a run's numbers on every surface."""
