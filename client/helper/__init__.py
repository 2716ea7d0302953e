"""Helper of secure sums: sums the clients' masks, and adds noise to the sum."""
