"""The HTTP surface: a table of routes, the gates before them, one module for each resource."""
