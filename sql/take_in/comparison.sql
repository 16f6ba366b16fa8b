-- Decides whether a page changed, from one fetch of the page and the fetches before it.
--
-- A fetch must be counted or left out independently of its result. If "unchanged" were counted where "changed" could
-- not be seen, the estimated rate would be too low. Therefore a fetch is not compared with the last fetch but with the
-- **base**: the last fetch that brought something to compare. A fetch that brings nothing to compare leaves the base as
-- it is. The next fetch that brings something is compared with the base, over all the days since the base.
-- Example: a server sends no etag with some answers, or no etag with a version that is only seconds old. Its pages can
-- be learned anyway. docs/changes.md explains all cases.

-- Three cases:
--
--   * The crawler says `changed` or `changes` itself: that is about the time since the last fetch.
--   * Status 304 means unchanged since the last fetch, except if that fetch brought nothing to compare. Then the 304 is
--     not counted, because a change would not have been counted either.
--   * Sketch, hash, etag and Last-Modified are compared with the base. A Last-Modified of the last 2 seconds is
--     ignored: servers that generate each answer send the current time.
--
-- The first fetch of a page has no base, so it says nothing about changes.
create or replace function recrawl_internal.comparison(
    status int, changes int, changed boolean, sketch int[], content_hash text, etag text, last_modified timestamptz,
    seen_at timestamptz,
    -- the values of the base
    last_sketch int[], last_hash text, last_etag text, last_modification timestamptz,
    last_fetched_at timestamptz, base_at timestamptz, planned_due timestamptz
) returns table (
    has_changed boolean, days_since float8, planned_days float8, age_days float8,
    compared_since timestamptz, is_open boolean, is_same boolean
)
language sql stable parallel safe rows 1
begin atomic
    select coalesce(told, differs),
           date_part('epoch', seen_at - since) / 86400,
           case when planned_due > seen_at then date_part('epoch', planned_due - since) / 86400 end,
           case when dated > since then date_part('epoch', seen_at - dated) / 86400 end,
           base,
           is_open,
           is_open or case when told is null then not differs else not told and base_at is null end
    from (select base, dated, told, differs,
                 case when told is null then base else last_fetched_at end as since,
                 last_fetched_at is not null and coalesce(told, differs) is null
                     and sketch is null and content_hash is null and etag is null as is_open
          from (select base, dated,
                       case when status = 304 then case when base_at is null then false end
                            else coalesce(changes > 0, changed) end as told,
                       coalesce(sketch <> last_sketch, content_hash <> last_hash,
                                recrawl_internal.opaque_tag(etag) <> recrawl_internal.opaque_tag(last_etag),
                                dated > base or dated <> coalesce(last_modification, dated)) as differs
                from (select coalesce(base_at, last_fetched_at) as base,
                             case when last_modified < seen_at - interval '2 seconds' then last_modified end as dated) d
                offset 0) c            -- computed once; the rest is cheap
         ) o;
end;
comment on function recrawl_internal.comparison(
    int, int, boolean, int[], text, text, timestamptz, timestamptz,
    int[], text, text, timestamptz, timestamptz, timestamptz, timestamptz
) is
    'Compares a fetch with what is known. has_changed: null if the fetch does not tell. days_since: days since the '
    'fetch that it is compared with. planned_days: the same at the planned time, if the fetch was brought forward. '
    'age_days: age of the change, if known. compared_since: the base. is_open: the fetch brought nothing to compare, '
    'so the base stays. is_same: the page is the same version.';
