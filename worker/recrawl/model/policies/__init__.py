"""How often pages are fetched: one file per policy. registry.py lists them, policy.py says what a policy
is asked, and outlook.py computes what frequencies lead to."""
