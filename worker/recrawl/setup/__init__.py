"""The embedded PostgreSQL, migrations, and the places of their files."""
