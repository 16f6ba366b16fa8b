"""Where sql/, migrations/ and alembic.ini are, and what sql/install.sql lists. Knows no database."""

import hashlib
import re
from pathlib import Path


def root() -> Path:
    """The checkout this package runs from, else the copy that the wheel carries."""
    package = Path(__file__).resolve().parents[1]
    checkout = package.parents[1]
    return checkout if (checkout / "sql" / "install.sql").is_file() else package / "_project"


def sql_files() -> list[Path]:
    """The files of sql/ in the order that install.sql includes them."""
    folder = root() / "sql"
    listed = re.findall(r"^\\ir (\S+)", (folder / "install.sql").read_text(encoding="utf-8"), re.MULTILINE)
    return [folder / name for name in listed]


def sql_digest() -> str:
    """Changes whenever any file of sql/ does."""
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sql_files())).hexdigest()


def versions() -> list[str]:
    """The versions of the tables, from the first to the newest."""
    return sorted(path.name.partition("_")[0] for path in (root() / "migrations" / "versions").glob("*_*.py"))


def created_names() -> set[str]:
    """schema.name of every function and view that sql/ creates."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in sql_files())
    return set(re.findall(r"^create or replace (?:function|view) (\w+\.\w+)", text, re.MULTILINE))
