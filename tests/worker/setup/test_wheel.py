"""The wheel, installed where there is no checkout, is the whole of recrawl."""

import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from recrawl.setup import project

CHECKOUT = Path(__file__).parents[3]
CARRIED = "recrawl/_project/"
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
# The packages that `pip install recrawl` brings in addition to recrawl.
LIGHT = ["Protego", "psycopg", "psycopg-binary", "typing-extensions", "xxhash"]


def ended(*command: str | Path, cwd: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(command, env=kept | variables, cwd=cwd, capture_output=True, text=True, timeout=300)


def run(*command: str | Path, cwd: Path, **variables: str) -> str:
    done = ended(*command, cwd=cwd, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    # Without network if the build backend is installed. Otherwise pip fetches it.
    at_hand = ["--no-build-isolation", "--no-index"] if importlib.util.find_spec("hatchling") else []
    run(*PIP, "wheel", "--quiet", "--no-deps", *at_hand, "--wheel-dir", folder, CHECKOUT, cwd=folder)
    (wheel,) = folder.glob("recrawl-*.whl")
    return wheel


def environment(home: Path) -> tuple[Path, Path]:
    """A new one without packages: where its programs are, and where its packages will be."""
    run(sys.executable, "-m", "venv", "--without-pip", home, cwd=home.parent)
    python = home / "bin" / "python"
    site = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=home).strip()
    return python.parent, Path(site)


def install(bin_: Path, *what: str | Path) -> None:
    run(*PIP, "--python", bin_ / "python", "install", "--quiet", "--no-index", *what, cwd=bin_)


@pytest.fixture(scope="module")
def bin_(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel in it. It uses the dependencies of the running environment."""
    bin_, site = environment(tmp_path_factory.mktemp("elsewhere") / "environment")
    install(bin_, "--no-deps", wheel)
    lent = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    # A path in a .pth file is not searched for further .pth files, such as the one of an editable recrawl.
    (site / "lent.pth").write_text("\n".join(sorted(lent)))
    return bin_


@pytest.fixture(scope="module")
def light_bin(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same without any extra. The packages that it needs are there already, as links; pip finds no others."""
    bin_, site = environment(tmp_path_factory.mktemp("light") / "environment")
    for name in LIGHT:
        package = importlib.metadata.distribution(name)
        for top in {file.parts[0] for file in package.files or []} - {"..", "__pycache__"}:
            (site / top).symlink_to(Path(str(package.locate_file(top))))
    install(bin_, wheel)
    return bin_


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_what_the_wheel_carries_is_what_the_checkout_has(wheel: Path) -> None:
    expected = {"alembic.ini": (CHECKOUT / "alembic.ini").read_bytes()}
    for folder in ("sql", "migrations", "docs/monitoring", "docs/systemd"):
        expected |= {f"{folder}/{name}": content for name, content in files(CHECKOUT / folder).items()}
    with zipfile.ZipFile(wheel) as archive:
        carried = {
            name.removeprefix(CARRIED): archive.read(name) for name in archive.namelist() if name.startswith(CARRIED)
        }
    assert {name: content for name, content in carried.items() if "__pycache__" not in name} == expected


def test_the_wheel_carries_the_package_and_nothing_else(wheel: Path) -> None:
    package = files(CHECKOUT / "worker" / "recrawl")
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.startswith(CARRIED)]
        assert {name for name in names if ".dist-info/" not in name} == {f"recrawl/{name}" for name in package}
        assert not any("__pycache__" in name for name in archive.namelist())
        (metadata,) = (archive.read(name).decode() for name in names if name.endswith("/METADATA"))
    assert "License-File: LICENSE" in metadata


def test_the_source_distribution_makes_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path, cwd=CHECKOUT)
    (source,) = tmp_path.glob("recrawl-*.tar.gz")
    at_hand = ["--no-build-isolation", "--no-index"]
    run(*PIP, "wheel", "--quiet", "--no-deps", *at_hand, "--wheel-dir", tmp_path, source, cwd=tmp_path)
    (again,) = tmp_path.glob("recrawl-*.whl")
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(again) as other:
        assert sorted(one.namelist()) == sorted(other.namelist())
        assert all(one.read(name) == other.read(name) for name in one.namelist())


def test_the_alerts_and_the_dashboard_are_found_as_the_document_says(bin_: Path, tmp_path: Path) -> None:
    (command,) = re.findall(r"^cp .*docs/monitoring.*$", (CHECKOUT / "docs" / "watch.md").read_text(), re.MULTILINE)
    run("sh", "-c", command, cwd=tmp_path, PATH=f"{bin_}{os.pathsep}{os.environ['PATH']}")
    assert files(tmp_path) == files(CHECKOUT / "docs" / "monitoring")


def test_the_checkout_wins_over_what_the_wheel_carries() -> None:
    assert project.root() == CHECKOUT


def test_installed_elsewhere_it_migrates_and_hands_out_pages(
    bin_: Path, new_database: Callable[..., str], tmp_path: Path, url: str
) -> None:
    database = new_database()

    def recrawl(*arguments: str) -> str:
        return run(bin_ / "recrawl", *arguments, cwd=tmp_path, DATABASE_URL=database)

    where = run(bin_ / "python", "-c", "from recrawl.setup import project; print(project.root())", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(bin_.parent)
    assert "newest version" in recrawl("migrate")
    assert recrawl("next").startswith("no page can be fetched now")
    assert recrawl("add", "http://a.test/") == "1 new\n"
    assert "http://a.test/" in recrawl("next", "1")

    def digest(address: str) -> list[tuple[object, ...]]:
        with psycopg.connect(address) as connection:
            return connection.execute("select digest from recrawl_internal.replayed").fetchall()

    assert digest(database) == digest(url)


def test_installed_elsewhere_alembic_does_it_too(bin_: Path, new_database: Callable[..., str], tmp_path: Path) -> None:
    database = new_database()
    show = "from recrawl.setup import project; print(project.root() / 'alembic.ini')"
    inifile = run(bin_ / "python", "-c", show, cwd=tmp_path).strip()
    run(bin_ / "python", "-m", "alembic", "-c", inifile, "upgrade", "head", cwd=tmp_path, DATABASE_URL=database)
    assert run(bin_ / "recrawl", "next", cwd=tmp_path, DATABASE_URL=database).startswith("no page can be fetched now")


def test_without_an_extra_it_brings_what_a_crawler_needs_and_no_more(light_bin: Path, tmp_path: Path) -> None:
    listed = "from importlib.metadata import distributions as d; print(*(one.name.replace('_', '-') for one in d()))"
    assert sorted(run(light_bin / "python", "-c", listed, cwd=tmp_path).split()) == sorted(["recrawl", *LIGHT])
    fingerprint = """
import psycopg, recrawl.client
from recrawl.client.fingerprint import distance, sketch, xxh3
print(xxh3(b"a page"), distance(sketch("the words of a page"), sketch("The words of a page!")), recrawl.__file__)
"""
    digest, far, where = run(light_bin / "python", "-c", fingerprint, cwd=tmp_path).split()
    assert (len(digest), far) == (32, "0.0")
    assert Path(where).is_relative_to(light_bin.parent)


@pytest.mark.parametrize("command", ["recrawl", "recrawl --help", "recrawl status", "recrawl up", "python -m recrawl"])
def test_without_its_extra_the_command_says_what_to_install(command: str, light_bin: Path, tmp_path: Path) -> None:
    program, *arguments = command.split()
    done = ended(light_bin / program, *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.endswith("pip install 'recrawl[server]'")
