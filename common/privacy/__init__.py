"""Differential privacy as pure maths: mechanisms, accounts and costs."""
