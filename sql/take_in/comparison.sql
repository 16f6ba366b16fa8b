-- Whether a page changed, from what one fetch of it and those before brought.
--
-- What is learnt must not depend on what is to be learnt: where a page that stayed the same would be counted, one that
-- changed must be too. So what is compared with is not the last fetch but the base, the last one that brought anything
-- to compare. A fetch that brings nothing leaves it as it was, and the next that does is held against it, over all the
-- days between. So even a server can be learnt from that sends no etag now and then, or none with a version that it has
-- just made. docs/changes.md goes through the cases.

-- What the crawler tells itself is about the time since the last fetch. So is 304, unless that fetch brought nothing to
-- compare: then it would count, and a change would not. The rest is held against the base. A Last-Modified of just now
-- is what servers say that make each answer anew. The first fetch has nothing yet that it could have changed from.
create or replace function recrawl_internal.comparison(
    status int, changes int, changed boolean, sketch int[], content_hash text, etag text, last_modified timestamptz,
    seen_at timestamptz,
    -- of the base
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
                offset 0) c            -- worked out once; the rest is cheap
         ) o;
end;
comment on function recrawl_internal.comparison(
    int, int, boolean, int[], text, text, timestamptz, timestamptz,
    int[], text, text, timestamptz, timestamptz, timestamptz, timestamptz
) is
    'Whether a page changed, as far as a fetch tells; since when; when it was planned, if it was brought forward; how '
    'old the change is, where that is known; the base; whether it stays the base; whether this is the same version.';
