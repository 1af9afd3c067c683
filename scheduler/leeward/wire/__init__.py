"""Clients that both sides of a topology need: its tasks (`runtime`) and the service (`adapters`)."""
