drop view if exists
    recrawl.page_status, recrawl.graph_node, recrawl.graph_link, recrawl.opic_run, recrawl_internal.page_in_graph, recrawl_internal.link_in_graph,
    recrawl_internal.score_in_graph, recrawl_internal.news_in_graph, recrawl_internal.last_terms;
drop function if exists
    recrawl.successors(bigint), recrawl.predecessors(bigint), recrawl.top_hubs(int), recrawl.top_authorities(int), recrawl.top_relevant(int),
    recrawl_internal.intern_pages(timestamptz, text[], float8[], float8[], timestamptz[], jsonb[], int[], boolean),
    recrawl_internal.intern_unknown(timestamptz, recrawl_internal.intern_item[], boolean),
    recrawl_internal.scored(bigint[]), recrawl_internal.follow_scores(recrawl_internal.page_score[]),
    recrawl_internal.combined_value(recrawl_internal.setting, float8, real, real, real, real);
drop type recrawl.scored_page;
drop table recrawl_internal.graph_news, recrawl_internal.graph_state, recrawl_internal.page_score, recrawl_internal.opic;

create function pg_temp.unpacked(targets bytea) returns bigint[]
language sql as $$
    select array(select ('x' || encode(substr(targets, 8 * n + 1, 8), 'hex'))::bit(64)::bigint
                 from generate_series(0, length(targets) / 8 - 1) n order by n)
$$;
alter table recrawl_internal.link alter column targets type bigint[] using pg_temp.unpacked(targets);
drop function pg_temp.unpacked(bytea);
alter table recrawl_internal.link reset (autovacuum_vacuum_scale_factor, autovacuum_vacuum_cost_delay);
comment on column recrawl_internal.link.targets is 'Pages it links to: distinct, ascending, never itself.';
alter type recrawl_internal.found_links alter attribute targets type bigint[];
alter type recrawl_internal.result_element drop attribute relevance, drop attribute sketch;
alter type recrawl_internal.result drop attribute relevance, drop attribute sketch;

-- Values that were found go: the version before knows none but those that are given. The queue of new pages learns of it.
with found as (
    select page_id, host_id, value, coalesce(pinned_value, 1) as given, state = 'live' and due_at is null as is_waiting
    from recrawl_internal.page where value <> coalesce(pinned_value, 1)
),
taken_back as (
    update recrawl_internal.page p set value = f.given from found f where p.page_id = f.page_id
)
insert into recrawl_internal.inbox (host_id, page_id, old_rank, new_rank)
select host_id, page_id, -value, -given from found where is_waiting;
alter table recrawl_internal.page
    drop column pinned_value, drop column relevance, drop column pinned_relevance, drop column sketch;
comment on column recrawl_internal.page.value is 'What its freshness is worth.';
alter table recrawl_internal.setting
    drop column authority_weight, drop column hub_weight, drop column importance_weight, drop column relevance_weight;
update recrawl_internal.replayed set digest = '';
