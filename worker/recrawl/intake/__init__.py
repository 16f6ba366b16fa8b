"""URL lists: read, cleaned, streamed into the database. Others use urls.py for single URLs."""
