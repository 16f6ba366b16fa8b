"""What people and programs see of a crawl: figures read once, a verdict on them, and what shows both."""
