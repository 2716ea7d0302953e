"""Home Assistant's automations: read as rules, and written from recommended rules."""
