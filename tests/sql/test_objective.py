"""From price to frequency: SQL and the model agree, for every objective and for any page."""

import numpy as np
import psycopg
import pytest

from recrawl.model.allocation.objectives import OBJECTIVES, PROPORTIONAL, objective_named

PRICED_BY = [*OBJECTIVES, PROPORTIONAL.name]  # also what only a policy makes largest

QUERY = """
    select coalesce(array_agg(f.frequency order by place), '{}')
    from unnest(%b::float8[], %b::float8[], %b::float8[]) with ordinality as p (price, page_value, rate, place),
         recrawl_internal.frequency_in_force(
             null, row(0, price, null, null, null, null, 1, 1, false, %s)::recrawl_internal.host_terms, null,
             page_value, rate
         ) f
"""


def in_sql(connection: psycopg.Connection, objective: str, *columns: np.ndarray) -> np.ndarray:
    row = connection.execute(QUERY, [*(column.tolist() for column in columns), objective]).fetchone()
    assert row
    return np.array(row[0])


@pytest.mark.parametrize("objective", PRICED_BY)
def test_a_price_buys_the_same_in_sql_as_in_the_model(connection: psycopg.Connection, objective: str) -> None:
    rng = np.random.default_rng(1)
    value, rate = 10 ** rng.uniform(-12, 6, 20_000), 10 ** rng.uniform(-12, 6, 20_000)
    weight = objective_named(objective).weight(value, rate)
    # Mostly below the weight, down to nothing and up to just below it, and sometimes above.
    share = np.where(
        rng.random(20_000) < 0.5, 10 ** rng.uniform(-12, 0.2, 20_000), 1 - 10 ** rng.uniform(-9, -1, 20_000)
    )
    wanted = objective_named(objective).frequency(share * weight, value, rate)
    assert (wanted > 0).sum() > 15_000
    np.testing.assert_allclose(in_sql(connection, objective, share * weight, value, rate), wanted, rtol=1e-7)


@pytest.mark.parametrize("objective", PRICED_BY)
def test_a_page_that_never_changes_or_is_worth_nothing_is_not_fetched(
    connection: psycopg.Connection, objective: str
) -> None:
    value, rate = np.array([0.0, 1.0, 0.0, 1e30]), np.array([1.0, 0.0, 0.0, 0.0])
    for price in (0.0, 1e-9, 1.0, np.inf):
        assert in_sql(connection, objective, np.full(4, price), value, rate).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("objective", PRICED_BY)
def test_no_price_value_or_rate_that_can_be_stored_is_an_error(connection: psycopg.Connection, objective: str) -> None:
    extremes = np.array([0.0, 1e-30, 1e-12, 1.0, 1e12, 1e30])
    prices = np.array([0.0, 1e-300, 1e-100, 1.0, 1e100, 1e300, np.inf])
    price, value, rate = (column.ravel() for column in np.meshgrid(prices, extremes, extremes))
    assert (in_sql(connection, objective, price, value, rate) >= 0).all()


def test_the_worked_values_of_the_literature_come_out(connection: psycopg.Connection) -> None:
    # 1/u(x): how often a page of rate 1 is fetched when a share x of the most a fetch can earn is asked.
    asked = in_sql(connection, "freshness", np.array([0.9, 0.5, 0.1]), np.ones(3), np.ones(3))
    np.testing.assert_allclose(asked, [0.257088, 0.595824, 1.88037], rtol=1e-5)
