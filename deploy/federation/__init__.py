"""Federations of this machine: requests, start, processes, watch, status, and clients that join."""
