"""Pages and texts on runs: report, live page, terminal and exports."""
