"""PostgreSQL: the pool, the lanes, migrations and the embedded server."""
