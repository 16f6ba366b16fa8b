"""Facts about the server of a crawl. Of the transactions of other logins, a login without pg_read_all_stats sees only
the prepared ones."""

from datetime import timedelta

from recrawl.store.connection import Connection, RowType, rows_as


def server(connection: Connection, row_type: type[RowType]) -> RowType:
    (row,) = rows_as(
        connection,
        row_type,
        """
        select clock_timestamp() as clock,
               current_setting('autovacuum')::bool and current_setting('track_counts')::bool as vacuums,
               pg_has_role('pg_read_all_stats', 'usage') as sees_all,
               current_setting('autovacuum_naptime')::interval as naptime,
               current_setting('wal_compression') as wal_compression,
               pg_size_bytes(current_setting('max_wal_size')) as wal_bytes,
               pg_size_bytes(current_setting('shared_buffers')) as buffer_bytes,
               current_setting('fsync')::bool as syncs,
               current_setting('full_page_writes')::bool as writes_full_pages
        """,
    )
    return row


def transactions(connection: Connection, row_type: type[RowType], longer_than: timedelta) -> list[RowType]:
    """The transactions of others in this database that are open for longer, the oldest first. Prepared transactions
    have no pid."""
    return rows_as(
        connection,
        row_type,
        """
        with holders as (
            select l.pid, l.virtualtransaction
            from pg_locks l join pg_class c on c.oid = l.relation join pg_namespace n on n.oid = c.relnamespace
            where l.granted and l.database = (select oid from pg_database where datname = current_database())
              and n.nspname = 'recrawl_internal' and c.relname = 'host'
              and l.mode in ('RowShareLock', 'RowExclusiveLock')
        )
        select a.pid, a.usename::text as login, a.application_name as program, a.state,
               clock_timestamp() - a.xact_start as age, null as gid,
               exists (select from holders h where h.pid = a.pid) as holds_hosts
        from pg_stat_activity a
        where a.datname = current_database() and a.pid <> pg_backend_pid() and a.backend_type = 'client backend'
          and a.xact_start < clock_timestamp() - %(longer)s::interval
        union all
        select null, p.owner::text, null, 'prepared', clock_timestamp() - p.prepared, p.gid,
               exists (select from holders h where h.virtualtransaction in (
                   select x.virtualtransaction from pg_locks x where x.transactionid = p.transaction and x.pid is null))
        from pg_prepared_xacts p
        where p.database = current_database() and p.prepared < clock_timestamp() - %(longer)s::interval
        order by age desc
        """,
        {"longer": longer_than},
    )


def superusers(connection: Connection) -> list[str]:
    """The logins of superusers that ask for pages or report them."""
    found = connection.execute(
        """
        select distinct a.usename::text as login
        from pg_stat_activity a join pg_roles r on r.oid = a.usesysid
        where a.datname = current_database() and a.pid <> pg_backend_pid() and r.rolsuper
          and a.query ~ '\\m(next_pages|report|report_pages)\\s*[(]'
        order by login
        """
    )
    return [login for (login,) in found]


def slots(connection: Connection, row_type: type[RowType]) -> list[RowType]:
    """The replication slots: each keeps write-ahead log, or deleted rows, for a replica."""
    return rows_as(
        connection,
        row_type,
        """
        select slot_name::text as name, active,
               pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_replay_lsn()
                                    else pg_current_wal_lsn() end, restart_lsn)::float8 as kept_bytes,
               greatest(age(xmin), age(catalog_xmin)) as transactions_behind
        from pg_replication_slots order by slot_name
        """,
    )


def dead_rows(connection: Connection, row_type: type[RowType]) -> list[RowType]:
    """The live rows and the dead rows of each table of the crawl, the table with most dead rows first."""
    return rows_as(
        connection,
        row_type,
        """
        select relname::text as table, n_live_tup as live, n_dead_tup as dead
        from pg_stat_user_tables where schemaname = 'recrawl_internal' order by n_dead_tup desc
        """,
    )
