"""The parts of the dashboard: figures in, markup out. Pure."""
