"""URL lists: read, cleaned, streamed into the database. urlfrontier/ and view/ use urls.py too, for one URL."""
