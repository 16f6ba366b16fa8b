"""URL lists: read, cleaned, streamed into the database."""
