"""Schedulers to compare with."""
