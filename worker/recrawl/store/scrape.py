"""Reads the figures that a monitoring system asks for every few seconds, through the views of recrawl_reader."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from psycopg.rows import dict_row

from recrawl.store.connection import Connection, only_read

Row = dict[str, Any]


@dataclass(frozen=True)
class Scrape:
    status: Row  # the row of crawl_status
    schedule: list[Row]  # of job_schedule
    always: list[Row]  # of jobs that run all the time: 1 failure while they fail, otherwise 0
    minutes: list[Row]  # rows of vitals in order, with the column calls_answered
    runs: list[Row]  # of job_run


def scrape(
    connection: Connection, always: list[str], minutes_since: datetime | None, runs_since: datetime | None
) -> Scrape:
    """Reads all in a short transaction that writes nothing, with a reader's rights if this login may take them.

    It reads the minutes and the runs from one hour before `minutes_since` and `runs_since` on: the counts of a minute
    can grow for half an hour, and the clock may have been set back. Without `minutes_since` it reads the newest hour of
    minutes. Without `runs_since` it reads the runs of the last hour. If a job is running, it always reads the runs from
    one hour before that job began.
    """
    with only_read(connection, timedelta(seconds=1)), connection.cursor(row_factory=dict_row) as cursor:
        (status,) = cursor.execute("select * from recrawl.crawl_status").fetchall()
        schedule = cursor.execute(
            "select job, every, due_at, running_since, succeeded_at, failures from recrawl.job_schedule"
        ).fetchall()
        running_always = cursor.execute(
            """
            select a.job, (l.ok is false)::int as failures
            from unnest(%s::text[]) as a (job)
            left join lateral (
                select r.ok from recrawl.job_run r where r.job = a.job order by r.started_at desc limit 1
            ) l on true
            """,
            [always],
        ).fetchall()
        running = [row["running_since"] for row in schedule if row["running_since"]]
        minutes = cursor.execute(
            """
            select *, calls - empty_calls as calls_answered from recrawl.vitals
            where at >= (select least(max(at), %s, now()) from recrawl.vitals) - interval '1 hour' and at <= now()
            order by at
            """,
            [minutes_since],
        ).fetchall()
        runs = cursor.execute(
            """
            select job, started_at, seconds, ok from recrawl.job_run
            where job = any (%s) and message is distinct from 'stopped'
                  and started_at >= least(%s, %s, now()) - interval '1 hour'
            """,
            [[row["job"] for row in schedule], runs_since, min(running, default=None)],
        ).fetchall()
    return Scrape(status, schedule, running_always, minutes, runs)
