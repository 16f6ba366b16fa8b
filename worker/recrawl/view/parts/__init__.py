"""The parts of the report and the dashboard: figures in, markup out. Pure."""
