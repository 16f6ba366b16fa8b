-- next_pages: hands out pages. A host stands in two queues of hosts: one for its due revisits, one for its new pages
-- (common/host_queues.sql). A page that is handed out gets a due time in its queue that is later than the end of its
-- lease. So no call has to look at leases: each page that is due may be handed out.
--
--   1. Check the arguments. Stop if the crawl is paused.
--   2. Do upkeep if it is due.
--   3. Divide the n pages between new pages and revisits, by the setting `discovery`.
--
-- Then in rounds, until n pages are handed out or step 5 finds no more hosts (at most 100 rounds):
--
--   4. Lock the first hosts of both queues. Hosts that another transaction has locked are skipped (hosts_to_visit.sql).
--   5. If no host is left: take back ended leases, and apply waiting entries of the inbox. If no host is left after
--      that: visit hosts whose first revisit becomes due later, within the look-ahead. (A host that is visited gives
--      such revisits too.)
--   6. Give the next pages of each host their slots (slots.sql), lease them and return them (hand_out.sql).
--
-- Steps 4 and 6 lock hosts (without waiting), then rows of the queue. They only read pages. Upkeep may lock pages, and
-- pages come before hosts in the order of locks. So upkeep that locks pages needs a transaction that has locked nothing
-- yet. Such a transaction has no id: it gets one when it locks a row.

-- Raises if an argument of next_pages is out of its range, or if the login may not have n more pages.
create or replace function check_arguments(
    t timestamptz, n int, ahead interval, lease interval, per_host int, notice interval, s setting
) returns void
language plpgsql stable as $$
begin
    if n is null or n <= 0 then
        perform refuse(format('next_pages: n must be positive, got %s', coalesce(n::text, 'null')));
    elsif n > s.max_per_call then
        perform refuse(format('next_pages: n must be at most the setting max_per_call (%s), got %s',
                              s.max_per_call, n));
    elsif ahead is null or in_seconds(ahead) not between interval '0' and s.max_ahead then
        perform refuse(format('next_pages: ahead must lie between 0 and the setting max_ahead (%s), got %s',
                              s.max_ahead, coalesce(ahead::text, 'null')));
    elsif lease is null or in_seconds(lease) not between interval '1 second' and s.longest_lease then
        perform refuse(format('next_pages: lease must lie between 1 second and the setting longest_lease (%s), got %s',
                              justify_hours(s.longest_lease), coalesce(lease::text, 'null')));
    elsif per_host <= 0 then
        perform refuse(format('next_pages: per_host must be positive, got %s', per_host));
    elsif notice is null or in_seconds(notice) not between interval '0' and s.max_ahead - in_seconds(ahead) then
        perform refuse(format('next_pages: notice must lie between 0 and what ahead leaves of the setting max_ahead '
                              '(%s), got %s', s.max_ahead, coalesce(notice::text, 'null')));
    end if;
    -- Two conditions: in one condition with `and`, leased_by() would cost each call of next_pages two reads of shared
    -- buffers, even if leased_by() is not reached.
    if session_user = any (s.full_logins) then
        if leased_by(session_user, t) + n > s.max_leased_per_login then
            perform refuse(format('next_pages: the login %s has leased %s pages, and n = %s more would exceed the '
                                  'setting max_leased_per_login (%s)',
                                  session_user, leased_by(session_user, t), n, s.max_leased_per_login));
        end if;
    end if;
end $$;

-- The arguments of a call of next_pages as a row of type ask: its intervals become times.
create or replace function ask_of(
    t timestamptz, ahead interval, lease interval, per_host int, notice interval, host text, s setting
) returns ask
language plpgsql volatile as $$
declare
    a          ask;
    class_draw numeric;                -- decides which class of new pages is asked first
begin
    a.t := t;
    a.slots_from := t + in_seconds(notice);
    a.slots_until := a.slots_from + in_seconds(ahead);
    a.head_due_until := t;
    a.lease_ends := a.slots_until + in_seconds(lease);
    a.per_host := least(per_host, 1000000);            -- slots_end() multiplies it by a gap: an interval must hold that
    a.s := s;
    if host is not null then
        a.only_host := coalesce(host_id_of('next_pages', host), 0);
    end if;
    select from_micros(h.last_value), l.last_value * 0.6180339887498949 % 1, l.last_value * 0.7548776662466927 % 1
    into a.host_from, a.draw, class_draw
    from host_horizon h, lease_id l;
    -- In the share `breadth` of the calls the search for new pages begins at a class that is drawn from all classes. So
    -- pages of low value do not wait for ever. Each draw is the fractional part of the lease id times an irrational
    -- number. Such numbers are spread evenly between 0 and 1, even over a few calls. Two draws, because a.draw
    -- is large in each call that asks for new pages first. With one draw these calls would never draw a class.
    a.first_class := case when class_draw < s.breadth::numeric
                          then floor((last_class() + 1) * class_draw / s.breadth::numeric) else 0 end;
    return a;
end $$;

-- The number of pages that a host is expected to give in the first round: its slots within the look-ahead, at the
-- default gap.
create or replace function expected_per_host(a ask, n int) returns numeric
language sql stable parallel safe
return least(a.per_host, n, 1 + floor(
           date_part('epoch', a.slots_until - a.slots_from)
           / date_part('epoch', (a.s).default_gap + start_window((a.s).default_gap, (a.s).window_share))))::numeric;

create or replace function next_pages_at(
    t timestamptz, n int, ahead interval, lease interval, per_host int, notice interval default '0',
    host text default null
) returns setof recrawl.page_to_fetch
language plpgsql volatile as $$
-- plans: lookups; locks host (passing over locked ones)
declare
    s              setting;
    a              ask;
    may_lock_pages constant boolean := pg_current_xact_id_if_assigned() is null;
    new_first      boolean;            -- the queue of new pages is asked first
    pages_per_host numeric;            -- that a host is expected to give
    wanted         int := n;
    wanted_new     int;                -- new pages among the wanted
    most_new       int;                -- new pages that the budget allows
    entries_left   int := 10200;       -- entries of the inbox that step 5 may still apply; all of them take about .2 s
    drained        int;
    visit          visits;
    this_lease     bigint;
    given          int;
    given_new      int;
begin
    -- 1
    perform check_isolation('next_pages');
    select * into s from setting;
    perform check_arguments(t, n, ahead, lease, per_host, notice, s);
    if s.paused then
        return;
    end if;
    perform nextval('ask_count');
    perform nextval('host_ask_count') where s.budget_is_measured and host is not null;
    a := ask_of(t, ahead, lease, per_host, notice, host, s);

    -- 2. A tick is due, or the clock jumped back (next_tick is far ahead), or after a crash (next_tick begins anew).
    if from_micros((select last_value from next_tick)) not between t and t + interval '1 minute' then
        perform tick_at(t, 10, 200), drain_up_to(t, 10000) where may_lock_pages;
        perform remember_tick(t) where not may_lock_pages;   -- this calls skip_lost_ids()
    end if;

    -- 3
    pages_per_host := expected_per_host(a, n);
    -- The draw rounds up or down. So over many calls the mean of wanted_new is n × discovery, even if n is 1.
    wanted_new := floor(n * s.discovery::numeric + a.draw);
    -- A host with both kinds gives the kind that is asked first: new pages in the share `discovery` of the calls.
    new_first := a.draw >= 1 - s.discovery::numeric;
    most_new := case when s.budget is null then 2147483647 else new_pages_left(t, a.slots_until - t, s) end;

    for nth in 1 .. 100 loop
        -- 4
        visit := hosts_to_visit(a, wanted, wanted_new, most_new, new_first, pages_per_host);
        -- 5. No host. Apply entries, again and again while there are any. Then look ahead once. Then stop.
        if visit.due_hosts = '{}' and visit.new_hosts = '{}' then
            if entries_left > 0 then
                perform reap_at(t, 100) where may_lock_pages and this_lease is null;
                drained := drain_at(t, least(entries_left, 10 * least(n, 1000) + 200));
                entries_left := case when drained > 0 then entries_left - drained else 0 end;
                continue when drained > 0;
            end if;
            exit when a.head_due_until = a.slots_until;        -- there is no further host
            a.head_due_until := a.slots_until;
            continue;
        end if;
        -- 6
        this_lease := coalesce(this_lease, nextval('lease_id'));
        return query select * from hand_out(a, visit, this_lease, nth);
        get diagnostics given = row_count;
        new_first := not new_first;    -- if hosts with both kinds have slots left, they give the other kind
        wanted := wanted - given;
        perform nextval('handed_out_count') from generate_series(1, given);
        exit when wanted <= 0 and s.budget is null;
        given_new := coalesce((select l.new_pages from lease l where l.lease_id = this_lease and l.round = nth), 0);
        perform count_fetches(given, given_new) where s.budget is not null;
        exit when wanted <= 0;
        wanted_new := least(wanted, greatest(0, wanted_new - given_new));
        most_new := most_new - given_new;
        -- The hosts gave fewer pages than expected. The next round expects what they gave.
        pages_per_host := greatest(1, given::numeric / (cardinality(visit.due_hosts) + cardinality(visit.new_hosts)));
    end loop;
    perform nextval('short_ask_count') where s.budget_is_measured and host is null and wanted > 0;
end $$;

create or replace function recrawl.next_pages(
    n int default 100, ahead interval default '0', lease interval default '10 minutes', per_host int default null,
    notice interval default '0', host text default null
) returns setof recrawl.page_to_fetch
language plpgsql volatile security definer as $$
begin
    return query select * from next_pages_at(clock_timestamp(), n, ahead, lease, per_host, notice, host);
end $$;
comment on function recrawl.next_pages is
'Gives you pages to fetch, and leases them: no other crawler gets these pages until the lease ends.

* n: the most pages to return, up to the setting max_per_call.
* ahead: how far to look ahead. With 0 you may request each page now, and each host gives at most one page. With 2
  seconds you also get pages that you may request within the next 2 seconds: fetch_at says when. At most the setting
  max_ahead.
* lease: how long you keep the pages, from 1 second to the setting longest_lease.
* per_host: the most pages of one host. They get the first slots of the host in the look-ahead. null = no limit.
* notice: how long you need until you can send the first request, for example on a slow network. No fetch_at is earlier
  than now plus this time. ahead and notice together may be at most the setting max_ahead.
* host: the name of a host, to get only its pages. null = all hosts.

Commit the transaction before you fetch the pages. If the call returns no row, there is no page for you now:
next_ready_at() says when to call again. The call does not wait for other calls of next_pages.';
grant execute on function recrawl.next_pages to recrawl_crawler;
