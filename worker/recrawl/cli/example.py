"""The end of each `--help`: an example to copy."""


def example(*commands: str, notes: str = "") -> str:
    """An epilog: some notes, then the commands, which click leaves as they are because of the \\b."""
    lines = "\n".join(f"  {command}" for command in commands)
    return f"{notes}\n\n\b\nExample:\n{lines}"
