"""Who calls: tenants, entities, API keys, logins and tokens."""
