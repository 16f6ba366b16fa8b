-- exclude: keeps URLs out that match a pattern, and takes out the known pages that match it.

-- The id of the last page that any transaction has taken in. Waits for transactions that are taking in pages, at most
-- lock_timeout. A transaction that takes in pages locks the table exclusion in row share mode, reads the exclusions and
-- boosts, and keeps the lock until it ends. A transaction that gets the exclusive lock knows that no such transaction
-- is open. So it can read every page that was checked with the older exclusions and boosts.
create or replace function newest_taken_in() returns bigint
language plpgsql volatile as $$
-- plans: lookups; locks exclusion
declare
    newest bigint;
begin
    lock table exclusion in exclusive mode;
    newest := (select last_value from page_id);
    raise exception using errcode = 'RC001';      -- releases the lock
exception when sqlstate 'RC001' then
    return newest;
end $$;

-- The lock is taken twice, so that no page is missed:
--
--   1. For a moment: afterwards every page up to the newest can be read. Then the long read of these pages follows.
--   2. Until the end of this transaction: the pages that were taken in during the long read are read too.
--
-- Row locks are taken only after that, so that two transactions cannot wait for each other. exclude waits for each lock
-- at most 2 seconds, because nobody can add pages while it waits.
create or replace function recrawl.exclude(pattern text) returns int
language plpgsql volatile security definer set lock_timeout = '2s' as $$
-- plans: whole; writes exclusion, inbox; locks exclusion, page by id, host by id, inbox
declare
    newest  bigint;
    doomed  bigint[];
    earlier text[];                    -- the patterns that were excluded before the long read
    gone    int;
begin
    perform check_isolation('exclude');
    perform check_pattern('exclude', pattern);
    newest := newest_taken_in();
    -- One statement with one snapshot: it reads, as of one moment, the pages and the patterns that kept pages out.
    -- Pages that have moved may come back during the long read. take_out() takes only those that are live then.
    select array(select page_id from page
                 where state in ('live', 'moved') and page_id <= newest and canonical_of(url) ~ exclude.pattern),
           array(select e.pattern from exclusion e)
    into doomed, earlier;
    lock table exclusion in exclusive mode;
    -- Did unexclude bring pages back during the long read? Then all pages are read again.
    if exists (select from unnest(earlier) as e (pattern)
               where not exists (select from exclusion x where x.pattern = e.pattern)) then
        newest := 0;
    end if;
    doomed := doomed || array(
        select page_id from page where state = 'live' and page_id > newest and canonical_of(url) ~ pattern);
    insert into exclusion (pattern, excluded_at) values (pattern, clock_timestamp()) on conflict do nothing;
    gone := take_out(doomed, 'excluded');
    -- Pages that did not enter their queues yet do not enter: their first entries in the inbox are deleted. Otherwise
    -- the pages could enter twice: by these entries and by the entries of unexclude. A drain locks the hosts of the
    -- entries that it applies, so lock these hosts too.
    perform from host h
    where h.host_id in (
        select i.host_id from inbox i
        where i.old_due is null and i.old_rank is null and not i.revived and i.page_id in (select unnest(doomed)))
    order by h.host_id
    for update;
    delete from inbox i
    where i.old_due is null and i.old_rank is null and not i.revived and i.page_id in (select unnest(doomed));
    perform note_event(clock_timestamp(), 'pages', pattern, format('excluded: %s pages were taken out', gone));
    return gone;
exception when lock_not_available then
    raise exception using
        message = 'exclude: a transaction in this crawl has been open for 2 seconds; try again when it has ended',
        errcode = 'lock_not_available';
end $$;
comment on function recrawl.exclude is
'Keeps URLs that match a pattern out of the crawl, and removes the pages that match. Returns the number of removed
pages.

* pattern: a POSIX regular expression. It is compared with the canonical URL, the spelling that all spellings of one
  URL are reduced to.

exclude reads all pages. If another transaction that uses the crawl stays open for more than 2 seconds, exclude may
raise an error. Then call it again.';

create or replace function unexclude_at(t timestamptz, pattern text) returns int
language plpgsql volatile as $$
-- plans: whole; writes exclusion; locks exclusion, page by id
declare
    back int;
begin
    -- One at a time: two calls would each still see the pattern that the other one deletes.
    lock table exclusion in share row exclusive mode;
    delete from exclusion e where e.pattern = unexclude_at.pattern;
    if not found then
        perform refuse(format('unexclude: %L is not excluded', pattern));
    end if;
    -- The pages that no other pattern keeps out.
    back := revive(t, array(
        select p.page_id
        from page p cross join lateral (select canonical_of(p.url) as canonical offset 0) u
        where p.state = 'excluded' and u.canonical ~ unexclude_at.pattern
          and not exists (select from exclusion e where u.canonical ~ e.pattern)
        order by p.page_id
        for update of p));
    perform note_event(t, 'pages', pattern, format('no longer excluded: %s pages came back', back));
    return back;
end $$;

create or replace function recrawl.unexclude(pattern text) returns int
language sql volatile security definer as $$
    select check_isolation('unexclude');
    select unexclude_at(clock_timestamp(), pattern)
$$;
comment on function recrawl.unexclude is
'Ends an exclusion. The pages that no other pattern excludes come back. They are due immediately, except pages that
waited among the new pages (they are new again), and pages that were done or declined (they stay so). Returns the number
of pages that come back.

* pattern: the same text that you gave to the function exclude. A pattern that is not excluded raises an error.';
grant execute on function recrawl.exclude, recrawl.unexclude to recrawl_operator;
