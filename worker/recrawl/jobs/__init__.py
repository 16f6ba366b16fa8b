"""The jobs. The worker runs them again and again, and `recrawl run` runs one once. registry.py lists them."""
