"""Puts Leeward on the hosts of a Storm cluster, and takes it back: `fab deploy`, `fab rollback`, `fab deploy_status`.

The pure part: `inventory.py` (which hosts, which roles), `facts.py` (what is found on a host), `wanted.py` (files that
a host shall have), `plan.py` (facts and wanted files -> ordered steps, or a refusal). `shell.py` carries steps out over
a `Transport`; `over_fabric.py` is the one that `fab` uses.
"""
