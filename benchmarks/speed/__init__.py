"""Timings of single parts of fedloom, each beside a baseline or a limit."""
