"""Exchange of messages with clients, through Flower."""
