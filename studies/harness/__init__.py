"""Parts that all studies share: experiments, runs, stored results, comparisons and tables."""
