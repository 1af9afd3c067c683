"""A cluster behind the service's ports in virtual time: the real service, coordinator and tasks, with flows for tuples.

`simulate` runs a policy through `control.service.Service` for hours of a rate trace. No tuple is simulated: a
component has a rate in, a rate out and a queue between them (`flows.py`).
"""
