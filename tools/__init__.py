"""Measuring tools and checks of the repository; no part of the product."""
