"""A reader who does everything that a document says, with a shell and recrawl only."""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def blocks(text: str) -> list[tuple[str, str]]:
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


class Reader:
    """A reader who has installed recrawl, and has no database."""

    def __init__(self, folder: Path, data: Path) -> None:
        self.folder = folder
        environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.environment = environment | {"RECRAWL_DATA_DIR": str(data), "PATH": path, "NO_PROXY": "*", "PAGER": "cat"}

    @contextmanager
    def leaves_running(self, command: str, *, stops: signal.Signals = signal.SIGINT) -> Iterator[Path]:
        """The file that the command writes its output to."""
        words = shlex.split(command, comments=True)
        said = self.folder / f"{' '.join(words[:2])}.txt"
        with said.open("w") as file:
            process = subprocess.Popen(
                words, env=self.environment, cwd=self.folder, stdout=file, stderr=subprocess.STDOUT
            )
        try:
            yield said
            process.send_signal(stops)
            assert process.wait(timeout=600) == 0, said.read_text()
        finally:
            process.kill()

    def says(self, command: str, text: str = "") -> str:
        done = subprocess.run(
            command, shell=True, env=self.environment, cwd=self.folder, input=text, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout
