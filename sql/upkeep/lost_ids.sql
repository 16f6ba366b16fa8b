-- Makes sure that no id is given twice after a crash or a failover. An asynchronous standby that becomes the primary
-- may lack the last changes of the old primary, and a server that was killed may have lost transactions with
-- synchronous_commit = off. Crawlers and workers still use ids of these changes. An id that was given a second time
-- would do harm:
--
--    sequence    harm if an id is given twice                                     becomes
--    lease_id    the old crawler reports, releases or extends the lease of        the clock's microseconds
--                another one
--    job_token   the old run of a job writes next to the new one                  the clock's microseconds
--    page_id     the report of a lost page counts for another page                10 million more
--
-- The clock's microseconds are larger than any id that any server has given, because nobody takes a million leases a
-- second. This holds also if two standbys become primary one after the other, and the second one lacks all changes of
-- the first one. Page ids stay small, because upkeep goes through them in steps. host_id and the ids of events are not
-- skipped, because crawlers and workers do not act by them. The other sequences are cells, which correct themselves.
--
-- The sign of a crash or a failover: is_called of the sequence next_tick is false. next_tick is unlogged. PostgreSQL
-- sets an unlogged sequence back when it recovers from a crash, and at the end of a standby's recovery. A clean restart
-- keeps it. The check comes before an id is drawn that a crawler or a running job acts by. It costs next_pages nothing:
-- next_pages reads next_tick anyway. If it was set back, next_pages does a tick, which skips the ids. add_pages, a
-- report with unknown links and the start of a job read next_tick for the check: a row in memory.

-- More page ids than a failover can lose.
create or replace function ids_skipped() returns bigint
language sql immutable parallel safe
return 10000000::bigint;

-- After a failover or a crash: moves the sequences of ids beyond all ids that may have been given. Of several callers
-- one skips. The others wait until it has done so, not until its transaction ends. The lock is one that only the owner
-- of the tables can take. Any login can hold an advisory lock, and would stop the crawl with it.
create or replace function skip_lost_ids() returns void
language plpgsql volatile as $$
-- plans: lookups; locks setting (without waiting)
declare
    skipped       constant bigint := ids_skipped();
    now_in_micros constant bigint := micros(clock_timestamp());
begin
    while not (select is_called from next_tick) loop
        begin
            lock table setting in share update exclusive mode nowait;      -- others can read and write it
        exception when lock_not_available then
            perform pg_sleep(0.001);
            continue;
        end;
        if not (select is_called from next_tick) then
            perform setval('lease_id', greatest(last_value + skipped, now_in_micros), is_called) from lease_id;
            perform setval('job_token', greatest(last_value + skipped, now_in_micros), is_called) from job_token;
            perform setval('page_id', last_value + skipped, is_called) from page_id;
            perform setval('next_tick', 1);
        end if;
    end loop;
end $$;
