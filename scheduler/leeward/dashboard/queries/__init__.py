"""The live page of queries that run: routes for a Starlette application, and the page's own files."""
