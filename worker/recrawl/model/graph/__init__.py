"""Scores from links: hubs, authorities, and the value of a page."""
