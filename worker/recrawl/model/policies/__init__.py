"""Ways to decide how often pages are fetched. A file a policy; registry.py says which there are."""
