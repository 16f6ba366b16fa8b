"""How often pages change: the belief before any fetch. Fetches change it in sql/common/rate.sql."""
