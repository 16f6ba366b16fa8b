"""The laboratory: webs whose every change is known, and the results of policies on them."""
