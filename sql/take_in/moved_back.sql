-- Brings back pages whose permanent redirect was reversed. Page A redirected to B permanently, so A is dead, and only B
-- is fetched. Later B redirects to A. Then B counts as missing, and A is brought back:
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
    noted   constant bigint[] := array(select distinct m.page_id from moved_back m order by m.page_id);
    waiting bigint[];                  -- noted pages with an entry in the inbox: it could give them a second place
    free    bigint[];                  -- the other noted pages that are not locked
    back    int;
begin
    if noted = '{}' then
        return 0;
    end if;
    begin
        lock table exclusion in row share mode nowait;     -- see exclude()
    exception when lock_not_available then
        return 0;
    end;
    waiting := array(select i.page_id from inbox i where (i.page_id in (select unnest(noted))) is true);
    free := array(
        select p.page_id
        from (select unnest(noted) as id) n
        cross join lateral (select page_id from page where page_id = n.id for no key update skip locked) p
        where (n.id in (select unnest(waiting))) is not true
        limit most);
    back := revive(t, array(
        select p.page_id
        from page p
        where p.page_id = any (free) and p.state = 'moved'
          and not exists (select from exclusion e where canonical_of(p.url) ~ e.pattern)
        order by p.page_id));
    -- Delete the notes of the pages in `free`, and the notes of pages that were deleted.
    delete from moved_back m
    using (select k.ctid as tid from moved_back k
           where (k.page_id in (select unnest(free))) is true
              or not exists (select from page p where p.page_id = k.page_id)
           for update skip locked) d
    where m.ctid = d.tid;
    return back;
end $$;
