-- Decides whether a page changed, from one fetch of the page and the fetches before it.
--
-- A fetch must be counted or left out independently of its result. If "unchanged" were counted where "changed" could
-- not be seen, the estimated rate would be too low. Therefore a fetch is not compared with the last fetch but with the
-- **base**: the last fetch that brought something to compare, or the first fetch if no later one did. A fetch that
-- brings nothing leaves the base as it is. The next fetch that brings something is compared with the base, over all the
-- days since the base. Example: a server sends no etag with some answers, or no etag with a version that is seconds
-- old. The rates of its pages can be learned anyway. docs/changes.md explains all cases.

-- Compares a fetch with what is known of its page. Three cases:
--
--   * The crawler says `changed` or `changes` itself: that is about the time since the last
--     successful fetch.
--   * Status 304 means unchanged since the last fetch, except if that fetch brought nothing to compare. Then only what
--     the 304 itself brings, for example an etag, is compared with the base. If it brings nothing, it is not counted: a
--     200 that brings nothing is not counted either.
--   * Sketch, hash, etag and Last-Modified are compared with the base. A Last-Modified of the last 2 seconds is
--     ignored: servers that generate each answer send the current time.
--
-- The first fetch of a page has no base, so it says nothing about changes. The columns:
--
--   has_changed      null if the fetch does not tell
--   counted          the number of changes, if the crawler counted them
--   days_since       days since the fetch that it is compared with
--   planned_days     days from that fetch to the planned time, if this fetch was brought forward
--   age_days         age of the change, if it is known and the fetch was not brought forward
--   compared_since   when the base was fetched
--   is_open          the fetch brought nothing to compare, so the base stays
--   is_same          the fetch shows the version of the base again; also true if is_open
create or replace function comparison(r result, p page, seen_at timestamptz) returns setof page_comparison
language sql stable parallel safe rows 1
begin atomic
    select coalesce(stated, differs),
           case when r.status <> 304 then r.changes end,
           date_part('epoch', seen_at - since) / 86400,
           case when p.planned_due > seen_at then date_part('epoch', p.planned_due - since) / 86400 end,
           case when modified_at > since and (p.planned_due > seen_at) is not true then
               date_part('epoch', seen_at - modified_at) / 86400 end,
           base,
           is_open,
           -- is_same. A statement compares this fetch with the last one. It tells nothing about an older base.
           is_open or case when stated is null then not differs else not stated and p.base_at is null end
    from (select base, modified_at, stated, differs,
                 -- A statement is about the time since the last fetch, a comparison about the time since the base.
                 case when stated is null then base else p.fetched_at end as since,
                 p.fetched_at is not null and coalesce(stated, differs) is null
                     and num_nonnulls((r.extras).sketch, r.content_hash, r.etag) = 0 as is_open
          from (select base, modified_at,
                       -- The statement of the crawler or of a 304; null = none, so the versions are compared.
                       case when r.status = 304 then case when p.base_at is null then false end
                            else coalesce(r.changes > 0, r.changed) end as stated,
                       coalesce((r.extras).sketch <> p.sketch,
                                r.content_hash <> p.content_hash,
                                opaque_tag(r.etag) <> opaque_tag(p.etag),
                                modified_at > base or modified_at <> coalesce(p.last_modified, modified_at)) as differs
                from (select coalesce(p.base_at, p.fetched_at) as base,
                             case when r.last_modified < seen_at - interval '2 seconds'
                                  then r.last_modified end as modified_at) d
                offset 0) c            -- computed once; the rest is cheap
         ) o
    offset 0;
end;
