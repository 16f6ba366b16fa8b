-- The graph that the job opic reads, and the scores and values that it stores.

create or replace view page_in_graph as
select page_id, coalesce(pinned_relevance, relevance, 'NaN') as relevance,
       case when pinned_value is null then (value / coalesce(boost, 1))::real else 'NaN' end as value
from page
where state = 'live';
comment on view page_in_graph is
    'The pages of the graph: their relevance (NaN = not known), and their value without boosts (NaN = pinned).';

create or replace view link_in_graph as
select page_id, targets
from link;
comment on view link_in_graph is
    'The links of the graph, packed. Some are from or to pages that are no longer in the graph.';

create or replace view score_in_graph as
select page_id, hub, authority, coalesce(importance, 'NaN') as importance, in_links
from page_score;
comment on view score_in_graph is 'The scores that the last run of opic wrote.';

-- The value of a page: the mean of its scores, weighted by the settings. Relevance is first divided by its mean over
-- all pages. The other scores have the mean 1. So the mean of the values is 1 too. The value is null if all weights are
-- 0, or if authority, hub or importance has a weight and is null. An unknown relevance counts as unknown_relevance().
create or replace function combined_value(
    s setting, mean_relevance float8, hub real, authority real, importance real, relevance real
) returns real
language sql immutable parallel safe
return ((case when s.authority_weight > 0 then s.authority_weight * authority else 0 end
         + case when s.hub_weight > 0 then s.hub_weight * hub else 0 end
         + case when s.importance_weight > 0 then s.importance_weight * importance else 0 end
         + case when s.relevance_weight = 0 then 0
                when mean_relevance > 1e-6 then
                    s.relevance_weight * coalesce(relevance, unknown_relevance()) / mean_relevance
                else s.relevance_weight end)
        / nullif(s.authority_weight + s.hub_weight + s.importance_weight + s.relevance_weight, 0))::real;

-- Stores values and boosts of pages. The values are given without boosts, and stored with them. Returns the number of
-- pages that changed. The rank of a new page is minus its value, so the queue gets each new value. The value may be
-- pinned while this runs: that is seen when the page is locked. If plain_values is null, the pages keep their values
-- without boosts. If boosts is null, the pages keep their boosts.
create or replace function put_values(page_ids bigint[], plain_values real[], boosts real[]) returns int
language sql volatile as $$
-- plans: lookups; writes page, inbox; locks page by id
    with
    -- The pages with another value or boost, and their new values.
    wanted as materialized (
        select p.page_id, p.host_id, p.value as old_value, v.value, b.boost,
               p.state = 'live' and p.due_at is null as is_waiting
        from unnest(page_ids, plain_values, boosts) as n (page_id, plain_value, boost)
        join page p on p.page_id = n.page_id
        cross join lateral (select case when boosts is null then p.boost else n.boost end as boost) b
        cross join lateral (
            select boosted(coalesce(n.plain_value, plain_value(p.value, p.boost, p.pinned_value)), b.boost) as value
        ) v
        where (v.value <> p.value or b.boost is distinct from p.boost)
              and (n.plain_value is null or coalesce(p.pinned_value, n.plain_value) = n.plain_value)
        order by p.page_id
        for update of p
    ),
    written as (update page p set value = w.value, boost = w.boost from wanted w where p.page_id = w.page_id),
    -- New pages get their new rank through the inbox.
    entered as (
        insert into inbox (host_id, page_id, old_rank)
        select host_id, page_id, -old_value from wanted where is_waiting and value <> old_value
    )
    select count(*)::int from wanted
$$;

-- Updates the values that follow from new scores. Returns the number of changed values. A value stays as it is if it is
-- pinned, or would change by less than a hundredth.
create or replace function follow_scores(scores page_score[]) returns int
language plpgsql volatile as $$
-- plans: lookups
declare
    moved      bigint[];
    new_values real[];
begin
    select array_agg(v.page_id), array_agg(v.value) into moved, new_values
    from (
        select p.page_id, p.boost, p.value as old_value,
               combined_value(s, g.mean_relevance, c.hub, c.authority, c.importance,
                              coalesce(p.pinned_relevance, p.relevance)) as value
        from setting s
        cross join graph_state g
        cross join unnest(scores) as c
        join page p on p.page_id = c.page_id and p.pinned_value is null
        offset 0
    ) v
    where has_moved(boosted(v.value, v.boost), v.old_value);
    return put_values(moved, new_values, null);
end $$;

-- Stores scores, and the values that follow from them, for a run that still holds its job. Locks pages before scores,
-- as keep_out() does. With locks it sees values and states that changed during the run. Pages that died get no scores.
create or replace function put_scores(
    token bigint, alive_for interval,
    page_ids bigint[], hubs real[], authorities real[], importances real[], in_links real[]
) returns void
language plpgsql volatile security definer set lock_timeout = '2s' as $$
-- plans: lookups; writes page_score; locks job, page by id, page_score by id
declare
    found page_score[];
begin
    perform keep_job(token, alive_for);
    perform from page p where p.page_id = any (page_ids) order by p.page_id for no key update;
    found := array(
        select (n.page_id, n.hub, n.authority, nullif(n.importance, 'NaN'), n.in_links)::page_score
        from unnest(page_ids, hubs, authorities, importances, put_scores.in_links)
             as n (page_id, hub, authority, importance, in_links)
        order by n.page_id);
    perform follow_scores(found);
    insert into page_score
    select n.* from unnest(found) n join page p on p.page_id = n.page_id and p.state = 'live'
    order by n.page_id
    on conflict (page_id) do update set
        hub = excluded.hub, authority = excluded.authority, importance = excluded.importance,
        in_links = excluded.in_links;
end $$;

-- Stores the numbers that new values depend on, in addition to scores and weights. A run calls this before
-- put_scores(), which computes values from these numbers.
create or replace function put_graph_state(token bigint, alive_for interval, mean_relevance float8, first_share float8)
returns void
language plpgsql volatile security definer as $$
-- plans: lookups; writes graph_state; locks job, graph_state
begin
    perform keep_job(token, alive_for);
    update graph_state g set mean_relevance = put_graph_state.mean_relevance, first_share = put_graph_state.first_share;
end $$;

-- Records a run of opic, after all its results are stored.
create or replace function put_opic(token bigint, alive_for interval, run jsonb) returns void
language plpgsql volatile security definer as $$
-- plans: lookups; writes opic; locks job
begin
    perform keep_job(token, alive_for);
    insert into opic
    select (jsonb_populate_record(null::opic, run || jsonb_build_object(
        'token', put_opic.token, 'started_at', (select started_at from job j where j.token = put_opic.token)))).*;
end $$;

grant execute on function put_graph_state, put_scores, put_opic to recrawl_worker;
grant select on page_in_graph, link_in_graph, score_in_graph to recrawl_worker;
