"""Timings of single parts of fedloom, each with a baseline or a limit."""
