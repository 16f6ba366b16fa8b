"""The laboratory: webs whose every change is known, and what a policy makes of them."""
