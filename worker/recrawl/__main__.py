"""The command `recrawl`, also `python -m recrawl`. It says what to install if a package is missing: a machine may have
only what recrawl.client needs."""

import sys


def main() -> None:
    try:
        from recrawl import cli

        cli.main()
    except ModuleNotFoundError as error:
        if not error.name or error.name.startswith("recrawl"):
            raise
        sys.exit(f"recrawl: this needs {error.name}, which comes with: pip install 'recrawl[server]'")


if __name__ == "__main__":
    main()
