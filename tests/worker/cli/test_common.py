"""Arguments that several commands have."""

import click
import pytest

from recrawl.cli.common import address

OPTION = click.Option(["--listen"])
CONTEXT = click.Context(click.Command("dashboard"))


@pytest.mark.parametrize(
    ("given", "host", "port"),
    [
        ("127.0.0.1:8035", "127.0.0.1", 8035),
        ("example.com:0", "example.com", 0),
        ("[::1]:8035", "::1", 8035),
        ("[fe80::1%eth0]:65535", "fe80::1%eth0", 65535),
        ("8035", "127.0.0.1", 8035),
        (":8035", "127.0.0.1", 8035),
    ],
)
def test_an_address_is_a_host_and_a_port(given: str, host: str, port: int) -> None:
    assert address(CONTEXT, OPTION, given) == (host, port)


@pytest.mark.parametrize(
    "given",
    ["", "::1", "::1:80", "[::1]", "[::1]:", "[::1:80", "::", "127.0.0.1", "a:http", "a:65536", "a:-1", "a:80\n"],
)
def test_an_address_without_brackets_or_without_a_port_is_an_error(given: str) -> None:
    with pytest.raises(click.BadParameter, match=r"is not like 127\.0\.0\.1:9888 or \[::1\]:9888"):
        address(CONTEXT, OPTION, given)
