"""The parts of a task put together: base classes of components, the link to the service, the sign of life."""
