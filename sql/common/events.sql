-- Events for the view events: decisions of people, blocks of hosts, runs of jobs, and standstills.

-- Writes an event. by: the login that caused it; null if the crawl itself did.
create or replace function note_event(t timestamptz, kind text, subject text, says text, by text default session_user)
returns void
language sql volatile as $$
-- plans: lookups; writes event
    insert into event (at, kind, subject, says, by) values (t, kind, left(subject, 1000), left(says, 2000), by)
$$;

-- Writes the event that a host was blocked by the crawl. Only the 1st, 4th and 16th block in a row are written, and at
-- most 100 events an hour for all hosts: if all hosts fail for a night, that must not write millions of events.
-- Transactions that run at the same time do not see each other's events, so there may be a few more.
create or replace function note_strike(t timestamptz, host text, until timestamptz, reason text, strikes int)
returns void
language plpgsql volatile as $$
-- plans: lookups
begin
    if strikes in (1, 4, 16) and (
        select count(*) < 100
        from (select from event
              where at > t - interval '1 hour' and at <= t and kind = 'host' and by is null
              order by at desc limit 100) last
    ) then
        perform note_event(t, 'host', host, format(
            'blocked until %s: %s%s', time_in_text(until), reason,
            case when strikes > 1 then format(', the %sth time in a row', strikes) end), null);
    end if;
end $$;

-- A time as text in UTC, the same for every session.
create or replace function time_in_text(t timestamptz) returns text
language sql stable
return case when t = 'infinity' then 'further notice'
            else to_char(t at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"') end;
