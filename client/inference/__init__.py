"""Use of finished models on a client: the models it stored, and the parameters that it uses."""
