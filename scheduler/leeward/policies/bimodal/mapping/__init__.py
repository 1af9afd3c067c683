"""Mapping by messages: a pure protocol."""
