"""Says on stderr which sessions a migration waits for. It asks over a connection of its own."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

ASK_EVERY = 2.0  # seconds. A shorter wait is not announced

# A prepared transaction has the number 0. A time is null if this login has no right to see the times of that session.
IN_THE_WAY = """
    select b.pid, case when b.pid = 0
        then 'a prepared transaction. The view pg_prepared_xacts shows it, and ROLLBACK PREPARED ends it'
        else format('process %s (%s, login %s)%s. To end it: SELECT pg_terminate_backend(%s);',
                    b.pid, coalesce(nullif(a.application_name, ''), 'no application name'), a.usename,
                    case when a.xact_start is not null
                         then to_char(a.xact_start, '", which has been in a transaction since" HH24:MI:SS')
                         when a.state_change is not null
                         then to_char(a.state_change, '", which has been idle since" HH24:MI:SS')
                         else '' end,
                    b.pid) end
    from unnest(pg_blocking_pids({})) as b (pid)
    left join pg_stat_activity a on a.pid = b.pid
    where b.pid = 0 or a.pid is not null
    order by b.pid
"""


@contextmanager
def announced(engine: Engine, waiting: Connection, ask_every: float, named: set[int]) -> Iterator[None]:
    """Prints the sessions that this connection waits for, new ones when they come. `named`: printed before."""
    ended = threading.Event()
    ((pid,),) = waiting.exec_driver_sql("select pg_backend_pid()").fetchall()
    thread = threading.Thread(target=_announce, args=[engine, int(pid), ask_every, named, ended], daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _announce(engine: Engine, pid: int, ask_every: float, named: set[int], ended: threading.Event) -> None:
    while not ended.wait(ask_every):
        with suppress(DBAPIError), engine.connect() as connection:
            options = {"no_parameters": True}
            found = connection.exec_driver_sql(IN_THE_WAY.format(pid), execution_options=options).fetchall()
            for blocker, who in found:
                if blocker not in named:
                    print(f"recrawl: the migration waits for {who}", file=sys.stderr, flush=True)
            # The migration may wait for the same session several times, with pauses in which it does not wait. After
            # such a pause the session is not named again.
            if found:
                named.clear()
                named.update(blocker for blocker, _ in found)
