"""Views of a running topology: facts in, pictures out. No decisions."""
