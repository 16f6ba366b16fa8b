"""Names in the package: what a reader finds under a name, he finds once."""

import ast
from collections import Counter, defaultdict
from pathlib import Path

import recrawl

PACKAGE = Path(recrawl.__file__).parent
FILES = [path for path in PACKAGE.rglob("*.py") if not path.name.endswith("_pb2.py")]


def test_a_class_name_is_used_once_in_the_package() -> None:
    places = defaultdict(list)
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_one_file_is_called_crawl() -> None:
    """Everything here is about a crawl: a file's name says what part of it. The one is the client's loop."""
    assert Counter(path.name for path in FILES)["crawl.py"] == 1
