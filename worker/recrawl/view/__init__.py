"""Screens, reports and metrics of a crawl: figures, the rules for trouble, and the views that show both."""
