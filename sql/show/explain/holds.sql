-- Explains why a live page is not handed out now: every reason, with the time until which it applies if nothing else
-- happens. The rules are the same as in next_pages. Explaining changes nothing.
--
--     place            its lease has ended, or the page is in the inbox
--     crawl or host    the crawl is paused, the host is blocked or busy, or the clock was ahead
--     not due          and why the due time is so late
--     turn (turn.sql)  of a revisit: the gap of the host, crawlers; of a new page also other new pages, revisits, the
--                      budget

-- Why a page is in no queue of next_pages.
create or replace function explain_place(t timestamptz, p page, place text) returns setof recrawl.explanation
language plpgsql stable as $$
-- plans: lookups
declare
    oldest constant timestamptz := (
        select i.at from inbox i where i.at >= from_micros((select last_value from inbox_horizon))
        order by i.at limit 1);
begin
    if place = 'coming back' then
        return query
        select 'now', 'lease_expired',
               format('Its lease %s ended %s ago without a report. The next upkeep puts it back into the queue.',
                      l.lease_id, in_words(t - l.lease_until)),
               'recrawl worker',
               jsonb_build_object('lease_id', l.lease_id, 'handed_out_at', l.handed_out_at,
                                  'lease_until', l.lease_until)
        from lease_of(p) l;
    elsif place = 'inbox' then
        return query
        select 'now', 'inbox',
               case when clock_timestamp() - oldest > interval '10 seconds' then
                   format('It waits in the inbox for upkeep, which puts it into the queue. The oldest entry has '
                          'waited %s: upkeep is behind, or does not run.', in_words(clock_timestamp() - oldest))
               else 'It is in the inbox. The next upkeep puts it into the queue.' end,
               'recrawl worker',
               jsonb_build_object('oldest_at', oldest, 'due_at', p.due_at);
    end if;
end $$;

-- The reasons why no page of a host is handed out.
create or replace function explain_holds(t timestamptz, h host, s setting) returns setof recrawl.explanation
language plpgsql stable as $$
-- plans: lookups
declare
    latest constant timestamptz := from_micros((select last_value from latest_tick));
    ahead  constant boolean := latest > t + small_step()
                               or exists (select from pulling_in where wrong_until > t);
begin
    if s.paused then
        return query select 'now', 'paused', 'The whole crawl is paused.', 'SELECT recrawl.resume();',
                            jsonb_build_object('until', 'infinity');
    end if;
    if h.blocked_until > t then
        return query
        select 'now', 'host_blocked',
               format('Its host %s is blocked %s, by %s: %s.', h.name,
                      case when isfinite(h.blocked_until) then 'for another ' || in_words(h.blocked_until - t)
                           else 'until you unblock it' end,
                      case when h.strikes > 0 then 'its own answers' else 'an operator' end,
                      coalesce(h.blocked_reason, 'no reason was given')),
               format('SELECT recrawl.unblock_host(%L);', h.name),
               jsonb_build_object('until', h.blocked_until, 'reason', h.blocked_reason,
                                  'by', case when h.strikes > 0 then 'host' else 'operator' end,
                                  'strikes', h.strikes, 'host', h.name);
    end if;
    if h.busy_until > t then
        return query
        select 'now', 'host_busy',
               format('Its host %s allows one request at a time, and another of its pages is leased: lease %s, which '
                      'ends in %s or with its report.', h.name, h.busy_lease, in_words(h.busy_until - t)),
               format('SELECT recrawl.set_host(%L, one_at_a_time => false);', h.name),
               jsonb_build_object('until', h.busy_until, 'lease_id', h.busy_lease, 'host', h.name);
    end if;
    if ahead then
        return query
        select 'now', 'clock',
               format('The clock of the server was ahead by at least %s. Upkeep moves all times that were written then '
                      'to the present.', in_words(latest - t)),
               'recrawl worker', jsonb_build_object('until', 'infinity', 'clock_stood_at', latest);
    end if;
end $$;

-- The result of the last report of a page: one of the words of outcome_of(), or none if the page was never reported. A
-- live page whose last status was 301 or 308 is missing: its target could not be used, or the site moved it back.
create or replace function last_outcome(p page) returns text
language sql immutable as $$
    select case when p.reported_at is null then 'none'
                else outcome_of(p.last_status, p.is_denied, p.moved_to, p.page_id) end
$$;

-- Why a page is not due yet.
create or replace function explain_wait(t timestamptz, p page, s setting) returns setof recrawl.explanation
language sql stable as $$
    select 'now', c.code,
           format(c.says, in_words(p.due_at - t), how_many(p.attempts, 30000, 'time'),
                  coalesce(p.last_status::text, 'nothing'), in_words(t - p.reported_at)),
           format('SELECT recrawl.fetch_now(''{%s}'');', p.page_id),
           jsonb_build_object('until', case when is_never(p.due_at) then 'infinity' else p.due_at end,
                              'due_at', case when not is_never(p.due_at) then p.due_at end, 'attempts', p.attempts,
                              'last_status', p.last_status, 'reported_at', p.reported_at,
                              'planned_due', p.planned_due)
    from (values
        ('declined',
         'A crawler declined it without a request. It is not fetched until you call fetch_now, or add_pages with a '
         'due time.',
         p.due_is = 'declined'),
        ('done',
         'It was reported or added as not wanted any more. It is not fetched until you call fetch_now, or add_pages '
         'with a due time.',
         p.due_is = 'done'),
        ('set_due',
         'Not due for another %1$s: its due time was set.',
         p.due_is = 'set'),
        ('denied',
         'Not due for another %1$s: robots.txt forbade it %4$s ago. It is tried again once a week.',
         p.is_denied and p.attempts = 0),
        ('unreported',
         'Not due for another %1$s: it was handed out %2$s in a row, and each lease ended without a report. The '
         'intervals grow. Does a crawler crash on it? Report status 0 for pages that cannot be fetched.',
         p.attempts > 0 and last_outcome(p) in ('none', 'fetched', 'denied')),
        ('missing',
         'Not due for another %1$s: the server answered %3$s %4$s ago. It is tried again at intervals that grow to '
         '90 days.',
         last_outcome(p) in ('missing', 'moved', 'gone') and p.attempts > 0),
        ('given_up',
         'Not due for another %1$s: it failed or was not reported %2$s in a row. It is tried again at intervals that '
         'grow to 30 days. The last report, status %3$s, was %4$s ago.',
         p.attempts >= s.max_attempts),
        ('backing_off',
         'Not due for another %1$s: it failed or was not reported %2$s in a row. The last report, status %3$s, was '
         '%4$s ago.',
         p.attempts > 0),
        ('set_due',
         'Not due for another %1$s: it was never fetched, and its first due time was set.',
         p.fetched_at is null),
        ('brought_forward',
         'Not due for another %1$s. This is sooner than planned, because of a hint that it may have changed.',
         p.planned_due is not null),
        ('not_due',
         'Not due for another %1$s. How often it is fetched is explained below.',
         true)
    ) as c (code, says, applies)
    where c.applies
    limit 1
$$;
