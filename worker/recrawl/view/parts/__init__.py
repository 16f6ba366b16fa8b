"""What the report and the dashboard are made of: figures in, markup out. Pure."""
