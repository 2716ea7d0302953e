"""Markets study: related products in seven XMarket markets."""
