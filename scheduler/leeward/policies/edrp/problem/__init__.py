"""The problem of EDRP: its values, their checks, their documents, and their evaluation by the definitions."""
