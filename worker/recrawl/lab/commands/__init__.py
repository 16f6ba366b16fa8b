"""The commands of the laboratory: demo, simulate and experiment. recrawl.cli lists them with the others. They use the
tables and progress bars of recrawl.cli; nothing else in lab/ does."""
