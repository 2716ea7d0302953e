"""Certificates, node keys and invitations."""
