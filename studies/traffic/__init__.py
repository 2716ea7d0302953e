"""Traffic study: forecasts on two Melbourne sets and on simulated streets."""
