"""The crawler's side. It needs psycopg and xxhash; numpy, SQLAlchemy and the rest are the worker's."""
