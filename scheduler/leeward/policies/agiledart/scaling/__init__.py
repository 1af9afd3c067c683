"""How many instances an operator gets, and whether they go up, out or elsewhere (spec of AgileDART, section 2)."""
