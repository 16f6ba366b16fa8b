"""The rights of a connection, and the time limit of its queries."""

from datetime import timedelta

from recrawl import store


def test_a_read_for_people_has_a_readers_rights_and_a_limit_until_it_ends(url: str) -> None:
    with store.connect(url) as connection:

        def given() -> list[str]:
            names = ("role", "transaction_read_only", "statement_timeout")
            return [connection.execute(f"show {name}".encode()).fetchall()[0][0] for name in names]

        before = given()
        with store.only_read(connection, timedelta(seconds=1.5)):
            assert given() == ["recrawl_reader", "on", "1500ms"]
        assert given() == before != ["recrawl_reader", "on", "1500ms"]
