"""URL lists: read, cleaned, streamed into the database. Other packages use urls.py for single URLs."""
