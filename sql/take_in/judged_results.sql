-- Judges the results of a report, each with its page and its place in the lease that it names. judged_results() and
-- page_in() are inlined into the plan of record_pages(), so they have no search_path of their own and are not volatile.

-- The row of page that is stored at tid, if this statement can see it. This is a function, because the planner then
-- knows the type of the row, and reads a column without building the whole row. The «offset 0» keeps the planner from
-- making a join of it.
create or replace function page_in(tid tid) returns setof page
language sql stable rows 1
begin atomic
    select * from page where page.ctid = page_in.tid offset 0;
end;

-- The turn of each result among the results of its page in this call. The order: results on the lease that holds the
-- page, then those without a lease, then the newest leases, and on one lease as in the call. The turn of the first one
-- is 'first'. A result with the same lease_id as the one before it is 'repeated'. All others are 'outranked'.
create or replace function turns_of(t timestamptz, results result[], leases locked_lease[]) returns text[]
language plpgsql stable as $$
-- plans: lookups
begin
    return array(
        select case when row_number() over of_page = 1 then 'first'
                    when lag(r.lease_id) over of_page is not distinct from r.lease_id then 'repeated'
                    else 'outranked' end
        from unnest(results) r
        cross join lateral (
            select exists (
                select from unnest(leases) l
                where l.lease_id = r.lease_id and l.lease_until > t and r.page_id = any (l.page_ids)
                  -- it was not reported on this lease before
                  and not exists (select from page p where p.page_id = r.page_id and p.last_lease >= l.lease_id)
            ) as is_on_lease
            offset 0
        ) l
        window of_page as (
            partition by r.page_id, r.problem is null
            order by l.is_on_lease desc, r.lease_id is not null, r.lease_id desc, r.ord)
        order by r.ord);
end $$;

-- Judges results. tid: the row of the page. lease_id and round: the row of the lease that holds it. turns: from
-- turns_of(); null if each page has one result.
create or replace function judged_results(
    t timestamptz, results result[], turns text[], leases locked_lease[],
    locked locked_pages, redirects bigint[], rules judging_rules
) returns table (tid tid, host_id bigint, lease_id bigint, round int, judgement judgement)
language sql stable
begin atomic
    select i.tid, p.host_id, l.lease_id, l.round, j
    from unnest(results) r
    left join unnest(leases) l on l.lease_id = r.lease_id and l.lease_until > t
                                  and l.page_ids[width_bucket(r.page_id, l.page_ids)] = r.page_id
    cross join lateral (
        select case when locked.page_ids[n.locked] = r.page_id then locked.tids[n.locked] end as tid,
               n.leased
        from (select width_bucket(r.page_id, locked.page_ids) as locked,
                     width_bucket(r.page_id, l.page_ids) as leased offset 0) n
        offset 0
    ) i
    left join lateral page_in(i.tid) p on true
    left join lateral (select h as terms from host_terms h where h.host_id = p.host_id offset 0) own on true
    cross join lateral (
        select case when l.lease_id is not null then
                   (l.round, l.handed_out_at, l.slots[i.leased], l.start_bys[i.leased], l.dues[i.leased],
                    l.held_dues[i.leased], p.host_id = any (l.busy_hosts))::lease_place
               end as lease
        offset 0
    ) k
    cross join lateral judge(t, r, p, k.lease, own.terms, redirects[r.ord], coalesce(turns[r.ord], 'first'), rules) j;
end;
