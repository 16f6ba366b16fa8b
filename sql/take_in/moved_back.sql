-- Pages that moved, and that their site moved back. Page A redirected to B permanently, so A is dead, and only B is
-- fetched. Later B redirects to A. Then B counts as missing, and A is brought back:
--
--   1. The report about B notes A in moved_back.
--   2. After ten minutes upkeep makes A live again.
--   3. A is fetched. If it answers, B moves to A at its next fetch. If A still redirects to B, it is dead again until
--      the next fetch of B. B is missing, so it is fetched ever less often.
--
-- A report could not bring A back itself: it holds locks that come later in the order of locks than the lock on
-- exclusion. The pages of ten minutes come back together, because the drain that gives them their places reads all
-- pages of their hosts (`revived`, see drain.sql).

-- Notes the pages that results redirect to, if these pages have moved and lead to the page of the result itself. ords:
-- the results that count.
create or replace function note_moved_back(
    t timestamptz, results result[], led_to found_links[], ords int[]
) returns void
language plpgsql volatile as $$
-- plans: hashes; writes moved_back; locks nothing that anybody waits for
begin
    insert into moved_back (at, page_id)
    select t, p.page_id
    from unnest(led_to) f
    join unnest(results) r on r.ord = f.ord
    cross join lateral (
        select p.page_id, p.state from page p where p.key = url_key(canonical_of((r.extras).redirect_to)) offset 0
    ) p
    where f.moved_to = f.page_id and p.state = 'moved' and f.ord = any (ords);
end $$;

-- Brings back pages that were noted, if the first of them was noted ten minutes ago. It looks at `most` of them, and
-- returns the number of pages that came back. It waits for no lock: a page that another transaction has locked comes
-- back at a later call.
create or replace function bring_back(t timestamptz, most int) returns int
language plpgsql volatile as $$
-- plans: lookups; writes page, inbox, moved_back; locks exclusion, page by id (passing over locked ones), moved_back
declare
    free bigint[];                     -- the noted pages that are not locked
    back int;
begin
    -- A note that is ahead of t was written while the clock was ahead.
    if (select at from moved_back order by at limit 1) between t - interval '10 minutes' and t is not false then
        return 0;
    end if;
    begin
        lock table exclusion in row share mode nowait;     -- see exclude()
    exception when lock_not_available then
        return 0;
    end;
    free := array(
        select p.page_id from page p
        where p.page_id in (select m.page_id from moved_back m order by m.at limit most)
        order by p.page_id
        for no key update skip locked);
    with
    -- Due now, a microsecond apart, as in fetch_now().
    revived as (
        update page p set state = 'live', moved_to = null, due_at = t - d.nth * interval '1 microsecond', due_is = null
        from (select m.page_id, row_number() over (order by m.page_id desc) - 1 as nth
              from page m
              where m.page_id = any (free) and m.state = 'moved'
                and not exists (select from exclusion e where canonical_of(m.url) ~ e.pattern)) d
        where p.page_id = d.page_id
        returning p.page_id, p.host_id
    ),
    -- A page may still have a place in the queue. That is checked when the inbox is drained.
    entered as (
        insert into inbox (host_id, page_id, revived) select host_id, page_id, true from revived
    ),
    -- The notes are done, also those of pages that are excluded or deleted by now.
    noted as (
        delete from moved_back m
        using (select k.ctid as tid from moved_back k
               where k.page_id = any (free) or not exists (select from page p where p.page_id = k.page_id)
               for update skip locked) d
        where m.ctid = d.tid
    )
    select count(*) into back from revived;
    return back;
end $$;
