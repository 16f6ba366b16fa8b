"""numba's functions, kept in the user's cache: to compile what an objective needs takes 5 to 9 s.

The folder of the cache is named by a digest of the whole model, because compiled code contains the functions that it
calls from other files. The names of its files contain a digest of the function's source file, which may be outside the
model (lab/visits.py). numba's own cache=True has these faults:

* It notices only changes of the file itself.
* It never finds a function that was made inside another function.
* It fails at import if nothing can be written, at a full disk and at a damaged file.
* If two processes compile for different types at once, it may keep the code of one as the other's, permanently.
"""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

import numba
import numpy as np
import platformdirs
from numba.core import caching

# For functions that become a part of the compiled loops: they are kept in these loops, and not by themselves.
scalar = numba.njit(fastmath={"contract", "nsz"}, error_model="numpy", forceinline=True)

FORGOTTEN_AFTER = 30 * 86400  # seconds; the folder of another version that got no new file for this time is deleted


def compiled(variant: str = "", **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """numba.njit with these options. A function that is made inside another one needs a `variant` that
    names the values that it takes from there, for example the objective."""

    def compiled_once(function: Callable[..., Any]) -> Any:
        if variant:  # numba knows functions, in memory and in the cache, by their names and types only
            function.__qualname__ += f".{variant}"
        dispatcher = numba.njit(**options)(function)
        if cache_folder():
            dispatcher._cache = _Cache(function)
        return dispatcher

    return compiled_once


@cache
def cache_folder() -> Path | None:
    """A folder for this source, numba, numpy and Python. None if files cannot be kept there, or not safely."""
    digest = sha256(repr((numba.__version__, np.__version__, sys.version)).encode())
    model = Path(__file__).parent
    folder = platformdirs.user_cache_path("recrawl") / "compiled"
    try:
        for path in sorted(model.rglob("*.py")):
            digest.update(f"\0{path.relative_to(model)}\0".encode() + path.read_bytes())
        folder /= digest.hexdigest()[:32]
        if not folder.exists():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _forget_former(folder.parent)
        # The files in the folder are run, so nobody else may be able to write them.
        if sys.platform != "win32" and (folder.stat().st_uid != os.geteuid() or folder.stat().st_mode & 0o022):
            return None
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return None
    return folder


def _forget_former(folders: Path) -> None:
    for folder in folders.iterdir():
        with suppress(OSError):  # another process may have deleted it
            if folder.stat().st_mtime < time.time() - FORGOTTEN_AFTER:
                shutil.rmtree(folder, ignore_errors=True)


class _Place(caching._CacheLocator):
    def __init__(self, folder: Path, place: str) -> None:
        self._folder, self._place = folder, place

    @classmethod
    def from_function(cls, function: Any, file: str) -> "_Place | None":
        folder = cache_folder()
        digest = sha256(Path(file).read_bytes()).hexdigest()[:16]
        return None if folder is None else cls(folder, f"{function.__code__.co_firstlineno}-{digest}")

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._folder.name

    def get_disambiguator(self) -> str:
        return self._place


class _Results(caching.CompileResultCacheImpl):
    _locator_classes = [_Place]  # noqa: RUF012 (as numba has it)


def _locked(path: Path) -> IO[str] | None:
    """The right to compile a function, until the file is closed. Another process waits, and then finds what was kept.
    None after a minute: the process that has the right may have failed."""
    give_up_at = time.monotonic() + 60
    with suppress(OSError, ImportError):  # there is no fcntl on Windows
        import fcntl

        file = path.open("w")
        while time.monotonic() < give_up_at:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return file
            except BlockingIOError:
                time.sleep(0.05)
    return None


class _Cache(caching.FunctionCache):
    _impl_class = _Results
    _lock_file: IO[str] | None = None

    def _index_key(self, types: Any, codegen: Any) -> Any:
        return types, codegen.magic_tuple()  # the names of the folder and of the file contain everything else

    def load_overload(self, types: Any, target: Any) -> Any:
        self._lock_file = None
        found = self._found(types, target)
        if found is None:
            self._lock_file = _locked(Path(self._cache_path, f"{self._cache_file._index_name}.lock"))
            found = self._found(types, target)
            if found is not None:
                self._lock_file = None
        return found

    def _found(self, types: Any, target: Any) -> Any:
        try:
            found = super().load_overload(types, target)
        except Exception:  # unpickling may raise anything
            with suppress(OSError):
                self.flush()
            return None
        return found if found is not None and found.signature.args == types else None

    def save_overload(self, types: Any, result: Any) -> None:
        with suppress(OSError):
            super().save_overload(types, result)
        self._lock_file = None
