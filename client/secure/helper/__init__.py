"""Helpers of secure sums: nodes without data that open sums of masks."""
