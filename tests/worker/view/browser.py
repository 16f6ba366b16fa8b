"""A headless Chromium, where there is one: at a width, in light or dark, and what it had to complain about."""

import base64
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from selenium import webdriver

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage"
)
PHONE, DESK = 390, 1280


def program() -> tuple[str, str] | None:
    """The browser and its driver."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


@contextmanager
def open_browser() -> Iterator["Browser"]:
    from selenium import webdriver  # here: it takes half a second, of each process of a run
    from selenium.webdriver.chrome.service import Service

    found = program()
    assert found
    with tempfile.TemporaryDirectory(prefix="recrawl-browser-", ignore_cleanup_errors=True) as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = found[0]
        for flag in (*FLAGS.split(), f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(found[1]))
        try:
            yield Browser(driver)
        finally:
            driver.quit()


class Browser:
    def __init__(self, driver: "webdriver.Chrome") -> None:
        self.driver = driver

    def show(self, address: str, width: int = DESK, *, dark: bool = False, scripts: bool = True) -> None:
        self.tell("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.look(width, dark=dark)
        self.driver.get("about:blank")
        self.complaints()
        self.driver.get(address)

    def look(self, width: int, *, dark: bool) -> None:
        size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width == PHONE}
        self.tell("Emulation.setDeviceMetricsOverride", **size)
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.tell("Emulation.setEmulatedMedia", features=features)

    def tell(self, command: str, **arguments: Any) -> Any:
        return self.driver.execute_cdp_cmd(command, arguments)

    def run(self, script: str, *arguments: object) -> Any:
        return self.driver.execute_script(script, *arguments)

    def find(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def text(self, selector: str) -> str:
        return str(self.run("return document.querySelector(arguments[0])?.textContent ?? ''", selector))

    def complaints(self) -> list[str]:
        """Errors, and what the policy stopped, since last asked."""
        return [entry["message"] for entry in self.driver.get_log("browser")]  # type: ignore[no-untyped-call]

    def press(self, *keys: str) -> None:
        for key in keys:
            code = {"Tab": 9, "Enter": 13, "ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35, " ": 32}[key]
            text = {"Enter": "\r", " ": " "}.get(key)
            down = {"type": "keyDown", "key": key, "windowsVirtualKeyCode": code} | ({"text": text} if text else {})
            self.tell("Input.dispatchKeyEvent", **down)
            self.tell("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def picture(self, file: Path, height: int | None = None) -> None:
        """Of the page, down to a height."""
        width, whole = self.run("const e = document.documentElement; return [e.clientWidth, e.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": width, "height": height or whole, "scale": 1}
        shot = self.tell("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        file.write_bytes(base64.b64decode(shot["data"]))


def until(holds: Callable[[], object], seconds: float = 120) -> None:
    end = monotonic() + seconds
    while not holds():
        assert monotonic() < end, "it never came to be"
        sleep(0.05)
