"""Ways to decide how often pages are fetched. A file a policy; registry.py says which there are.

Those that divide a budget by how often pages change are asked by policy.py's Question. Those that go by how much of a
page changes decide page by page, visit by visit: longevity.py says what they are told.
"""
