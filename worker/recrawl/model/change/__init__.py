"""How often pages change: what fetches teach, and what is believed before."""
