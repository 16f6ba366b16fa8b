"""The files of this installation: where sql/, migrations/ and alembic.ini are, and what sql/install.sql lists. Knows no
database."""

import hashlib
import re
from pathlib import Path

DECLARATION = re.compile(
    r"""^(create\ or\ replace\ function\ ([\w.]+).*?(?=\blanguage\b)
        |create\ or\ replace\ view\ ([\w.]+).*?;$
        |select\ make_type\('(\w+)',.*?\)',$)""",
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)
ROLES = ("recrawl_crawler", "recrawl_operator", "recrawl_reader", "recrawl_worker")  # roles.sql makes them
GRANT = re.compile(r"^grant\b[^;]+?\bto\s+\w+(,\s*\w+)*;$", re.MULTILINE)


def root() -> Path:
    """The checkout from which this package runs. Without a checkout, the copy in the wheel."""
    package = Path(__file__).resolve().parents[1]
    checkout = package.parents[1]
    return checkout if (checkout / "sql" / "install.sql").is_file() else package / "_project"


def sql_files() -> list[Path]:
    """The files of sql/ in the order that install.sql includes them."""
    folder = root() / "sql"
    listed = re.findall(r"^\\ir (\S+)", (folder / "install.sql").read_text(encoding="utf-8"), re.MULTILINE)
    return [folder / name for name in listed]


def sql_texts(with_roles: bool) -> list[str]:
    """The text of each file of sql/. Without roles, no text creates a role or grants a right to one."""
    if with_roles:
        return [path.read_text(encoding="utf-8") for path in sql_files()]
    return [GRANT.sub("", path.read_text(encoding="utf-8")) for path in sql_files() if path.name != "roles.sql"]


def sql_digest() -> str:
    """Changes whenever any file of sql/ does."""
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sql_files())).hexdigest()


def versions() -> list[str]:
    """The versions of the tables, from the first to the newest."""
    return sorted(path.name.partition("_")[0] for path in (root() / "migrations" / "versions").glob("*_*.py"))


def declarations() -> dict[str, str]:
    """The functions, views and row types that sql/ makes: schema.name, and a hash that changes with the declaration.

    The declaration of a function is its text up to the word `language`: name, arguments and result. The declaration of
    a view or a row type is its whole text. Functions of the same name share one hash.
    """
    text = "\n".join(path.read_text(encoding="utf-8") for path in sql_files())
    found: dict[str, str] = {}
    for declaration, *names in DECLARATION.findall(text):
        name = "".join(names)
        if "." not in name:
            name = f"recrawl_internal.{name}"  # the first schema of the search path of install.sql
        found[name] = found.get(name, "") + declaration
    return {
        name: hashlib.md5(declaration.encode(), usedforsecurity=False).hexdigest()
        for name, declaration in found.items()
    }
