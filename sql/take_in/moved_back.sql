-- Pages that moved, and that their site moved back. Page A redirected to B permanently, so A is dead, and only B is
-- fetched. Later B redirects to A. Then B counts as missing, and A is brought back:
--
--   1. The report about B notes A in moved_back.
--   2. Within ten minutes upkeep makes A live again.
--   3. A is fetched. If it answers, B moves to A at its next fetch. If A still redirects to B, it is dead again until
--      the next fetch of B. B is missing, so it is fetched ever less often.
--
-- A report could not bring A back itself: it holds locks that come later in the order of locks than the lock on
-- exclusion. The pages of ten minutes come back together, because the drain that gives them their places reads all
-- pages of their hosts (`revived`, see drain.sql).

-- Notes pages that have moved, and that results redirect to, if the redirects lead to no live page. redirects: the live
-- pages that the redirects lead to, by ord. ords: the results that count.
create or replace function note_moved_back(results result[], redirects bigint[], ords int[]) returns void
language plpgsql volatile as $$
-- plans: lookups; writes moved_back; locks nothing that anybody waits for
begin
    insert into moved_back (page_id)
    select distinct p.page_id
    from unnest(results) r
    cross join lateral (
        select p.page_id from page p
        where p.key = url_key(canonical_of((r.extras).redirect_to)) and p.state = 'moved'
        offset 0
    ) p
    where (r.extras).redirect_to is not null and redirects[r.ord] is null and r.ord = any (ords)
      and not exists (select from moved_back m where m.page_id = p.page_id);
end $$;

-- Brings back pages that were noted, at most `most`. Returns their number. It waits for no lock: a page that another
-- transaction has locked comes back at a later call.
create or replace function bring_back(t timestamptz, most int) returns int
language plpgsql volatile as $$
-- plans: lookups; writes moved_back; locks exclusion, page by id (passing over locked ones), moved_back
declare
    free bigint[];                     -- noted pages that are not locked
    back int;
begin
    if not exists (select from moved_back) then
        return 0;
    end if;
    begin
        lock table exclusion in row share mode nowait;     -- see exclude()
    exception when lock_not_available then
        return 0;
    end;
    -- A page whose first entry is still in the inbox waits: it would get two places.
    free := array(
        select p.page_id
        from (select distinct m.page_id from moved_back m) m
        join page p on p.page_id = m.page_id
        where (p.page_id in (select i.page_id from inbox i where i.old_due is null and i.old_rank is null)) is not true
        order by p.page_id
        limit most
        for no key update of p skip locked);
    back := revive(t, array(
        select p.page_id
        from page p
        where p.page_id = any (free) and p.state = 'moved'
          and not exists (select from exclusion e where canonical_of(p.url) ~ e.pattern)
        order by p.page_id));
    delete from moved_back m where m.page_id = any (free);
    return back;
end $$;
