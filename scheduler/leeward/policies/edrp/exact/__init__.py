"""The exact search: branch and bound over deployments, in compiled kernels."""
