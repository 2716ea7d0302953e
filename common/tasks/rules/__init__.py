"""Rules task: definitions that server and clients share."""
