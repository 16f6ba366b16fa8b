-- The job vitals. Once a minute it sums up the reports, and writes counts and samples of the queue and the pages.

-- Writes the minute that ended last into vitals, and sums up the minutes before it again. false: the minute was written
-- before, or another session is writing it.
create or replace function take_vitals_at(t timestamptz) returns boolean
language plpgsql volatile as $$
-- plans: whole; writes vital, vital_hour; locks vitals_state (passing over it when it is locked), vital, vital_hour
declare
    newest constant timestamptz := minute_of(t) - interval '1 minute';    -- the last whole minute
    state  vitals_state;
    since  timestamptz;
    is_new boolean;
begin
    -- Only one session at a time.
    select * into state from vitals_state for update skip locked;
    if not found then
        return false;
    end if;
    -- Minutes in the future were written while the clock was ahead.
    delete from vital where at > newest;
    delete from vital_hour where at > newest;
    -- Sum up again the last five minutes, and all minutes from the last written one on, if pulse still has them.
    since := greatest(least(newest - interval '4 minutes', coalesce((select max(at) from vital), '-infinity')),
                      minute_of(t - pulse_kept()) + interval '1 minute');
    perform fold_pulses(since, newest + interval '1 minute');
    is_new := not exists (select from vital where at = newest and due is not null);
    if is_new then
        if state.hosts_at is null or t not between state.hosts_at and state.hosts_at + interval '4.5 minutes' then
            perform look_at_hosts(t);
        end if;
        insert into vital (at) values (newest) on conflict do nothing;       -- it has a row if there were reports
        perform take_counts(newest);
        perform take_samples(t, newest);
        perform note_standstill(t, newest);
    end if;
    perform fold_minutes(since);
    return is_new;
end $$;

-- take_vitals_at now, for the job vitals.
create or replace function take_vitals() returns boolean
language sql volatile security definer as $$
    select take_vitals_at(clock_timestamp())
$$;
grant execute on function take_vitals to recrawl_worker;

-- Writes the counts since the last call into a minute: pages handed out, calls of next_pages, empty calls, and new
-- pages. The counts come from sequences. After a crash a sequence may have skipped a few numbers. Page ids may also
-- have skipped ids_skipped() numbers, and these are no pages. If lease ids were skipped, no call counts as empty.
create or replace function take_counts(minute timestamptz) returns void
language plpgsql volatile as $$
-- plans: lookups; writes vital, vitals_state; locks nothing: the caller holds vitals_state
declare
    before vitals_state;
    now_   vitals_state;
begin
    select * into before from vitals_state;
    update vitals_state v set
        handed_out = coalesce((select last_value from handed_out_count where is_called), 0),
        calls = coalesce((select last_value from ask_count where is_called), 0),
        leases = coalesce((select last_value from lease_id where is_called), 0),
        page_id = coalesce((select last_value from page_id where is_called), 0)
    returning v.* into now_;
    update vital set
        handed_out = greatest(now_.handed_out - before.handed_out, 0),
        calls = greatest(now_.calls - before.calls, 0),
        empty_calls = greatest(now_.calls - before.calls - (now_.leases - before.leases), 0),
        pages_added = greatest(now_.page_id - before.page_id, 0) % ids_skipped()
    where at = minute;
end $$;

-- Writes the state of the queue, the hosts and the pages into a minute.
create or replace function take_samples(t timestamptz, minute timestamptz) returns void
language sql volatile as $$
-- plans: whole; writes vital; locks nothing: the caller holds vitals_state
    update vital v set
        (due, due_crawler, due_gap, due_blocked) = (
            select d.due, d.due_crawler, d.due_gap, d.due_blocked from sample_due(t, 100) d),
        new_waiting = (select q.waiting_new from sample_queue(t, 100) q),
        leased = (select coalesce(sum(l.unreported), 0) from lease l where l.lease_until > t),
        (pages, hosts, hosts_blocked) = (select s.pages, s.hosts, s.hosts_blocked from vitals_state s),
        (hosts_ready, ready_wait) = (select w.hosts_ready, w.ready_wait from hosts_waiting(t) w),
        inbox_wait = inbox_wait(),
        (fresh, fresh_error, covered) = (
            select p.fresh, p.fresh_error, p.covered from sample_pages(t, 200) p),
        hosts_capped = (select a.capped_hosts from allocation a order by a.token desc limit 1),
        (expected, limit_with_gaps, limit_without_gaps) = (
            select a.utility, a.limit_with_gaps, a.limit_without_gaps
            from (select * from allocation order by token desc limit 1) a
            where a.objective in ('freshness', 'poisson_freshness')),
        budget = (select s.budget from setting s)
    where v.at = minute
$$;

-- Writes an event when the crawl stands still, and another event when it goes on. The crawl stands still if there was
-- no report for five minutes although a host was ready for all that time.
create or replace function note_standstill(t timestamptz, minute timestamptz) returns void
language plpgsql volatile as $$
-- plans: whole; writes vitals_state; locks nothing: the caller holds it
declare
    patience    constant interval := '5 minutes';
    now_        vital;
    still_since timestamptz;
    last_report timestamptz;
begin
    select * into now_ from vital where at = minute;
    select s.still_since into still_since from vitals_state s;
    last_report := (select p.last_report_at from last_pulses(t) p);
    if still_since is null then
        if now_.ready_wait >= patience and not (select paused from setting)
           and not exists (    -- it has just been resumed
               select from event where kind = 'crawl' and subject = 'paused' and at between t - patience and t)
           and coalesce(last_report, minute - pulse_kept()) < t - patience
           and exists (select from vital where at > t - interval '1 day' and fetches > 0) then
            update vitals_state s set still_since = coalesce(last_report, t - patience);
            perform note_event(t, 'crawl', 'crawlers', format(
                'no crawler has reported for %s, although %s ready', in_words(patience),
                how_many(now_.hosts_ready::bigint, 1000, 'host')
                || case now_.hosts_ready when 1 then ' is' else ' are' end), null);
        end if;
    elsif last_report > still_since then
        update vitals_state s set still_since = null;
        perform note_event(t, 'crawl', 'crawlers', format(
            'crawlers report again, after %s without a report', in_words(last_report - still_since)), null);
    elsif still_since > t then                              -- the clock was set back
        update vitals_state s set still_since = t;
    end if;
end $$;
