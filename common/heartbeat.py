"""Rhythm of the clients' heartbeats, by which the server separates slow clients from lost ones."""

PROMISE_SECONDS = 10.0
"""Interval that a client promises to the SuperLink, which misses a node after twice that.

This is the minimum of Flower."""

IDLE_SECONDS = 5.0
"""Interval while no request waits for an answer."""

BUSY_SECONDS = 0.75
"""Interval from the arrival of a request until its reply is sent."""

SILENCE_SECONDS = 2.25
"""Time without heartbeat after which the server expects no reply of a client that it has asked."""

RESTART_SECONDS = 0.75
"""The same after a restart of the client.

If the request has reached it again, its first heartbeat follows at once."""
