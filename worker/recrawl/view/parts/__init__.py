"""The parts of the dashboard: figures and rules in, markup out. No file here reads the database: view/overview.py and
view/search.py do."""
