"""The commands of the laboratory: demo, simulate and experiment. recrawl.cli lists them with the others. They use its
tables and progress bars; nothing else of lab/ does."""
