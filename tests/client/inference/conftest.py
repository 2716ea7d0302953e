"""Table of two sensors."""

from tests.support.hourly import table

__all__ = ["table"]
