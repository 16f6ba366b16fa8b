"""How often pages change: the belief before any fetch, and how fetches change it."""
