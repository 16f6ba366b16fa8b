"""The commands of the laboratory: demo, simulate and experiment. recrawl.cli lists them with the others."""
