"""The parts of the dashboard: figures and rules in, markup out. overview.py and search.py read the database."""
