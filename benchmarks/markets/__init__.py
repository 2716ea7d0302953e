"""What goes with an item, in seven XMarket markets: lines, the default, the paper's methods, items cold in a market."""
