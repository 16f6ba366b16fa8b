-- The graph that the job opic reads: all of it, or only the news (the pages that changed since the last read).

-- Empties the table of news if it is full. The run that calls this then reads the whole graph, so no change is lost:
-- see is_news_full(). Returns false if another transaction has been adding news for a second. Then the table stays
-- full, and the next run must read the whole graph too. A run calls this before it reads.
create or replace function reopen_news(token bigint, alive_for interval) returns boolean
language plpgsql volatile security definer as $$
-- plans: lookups; writes graph_state, graph_news; locks job, graph_state, graph_news
begin
    perform keep_job(token, alive_for);
    if not is_news_full() then
        return true;
    end if;
    update graph_state set token = null;
    for n in 1..20 loop
        begin
            -- NOWAIT: transactions that add news would wait behind a lock that waits.
            lock table graph_news in access exclusive mode nowait;
            truncate graph_news;
            return true;
        exception when lock_not_available then
            perform pg_sleep(0.05);
        end;
    end loop;
    return false;
end $$;

-- Stores the token of this run. Returns the token of the run that read the news last, or null if the results of that
-- run are not complete. The call is the first statement of a REPEATABLE READ transaction that reads the graph. The
-- transaction later deletes only news that its snapshot shows. The row of graph_state is a fence: if a newer run has
-- updated it, an older run fails here.
create or replace function begin_graph_read(token bigint) returns bigint
language plpgsql volatile security definer as $$
-- plans: lookups; writes graph_state; locks graph_state
declare
    last_token bigint;
begin
    select g.token into last_token from graph_state g for update;
    if last_token > begin_graph_read.token then
        raise exception using
            message = 'another worker took this job over', errcode = 'object_not_in_prerequisite_state';
    end if;
    update graph_state g set token = begin_graph_read.token;
    -- A failover can lose the end of a run that its worker remembers as complete. Then scores are missing here that the
    -- worker believes to be stored.
    return (select o.token from opic o where o.token = last_token);
end $$;

-- Deletes the news of this snapshot, because the run has read them. Returns their number.
create or replace function end_graph_read() returns bigint
language plpgsql volatile security definer as $$
-- plans: whole; writes graph_news; locks graph_news
declare
    known bigint;
begin
    delete from graph_news;
    get diagnostics known = row_count;
    return known;
end $$;

create or replace view page_in_graph as
select page_id, coalesce(pinned_relevance, relevance, 'NaN') as relevance
from page
where state = 'live';
comment on view page_in_graph is 'The pages of the graph. NaN = the relevance is not known.';

create or replace view link_in_graph as
select page_id, targets
from link;
comment on view link_in_graph is
    'The links of the graph, packed. Some are from or to pages that are no longer in the graph.';

create or replace view score_in_graph as
select page_id, hub, authority, coalesce(importance, 'NaN') as importance, in_links
from page_score;
comment on view score_in_graph is 'The scores that the last run of opic wrote.';

-- A deleted page is shown as not live. A page whose links are not known is shown without links.
create or replace view news_in_graph as
select n.page_id,
       coalesce(p.state = 'live', false)::int as is_live,
       coalesce(p.pinned_relevance, p.relevance, 'NaN') as relevance,
       case when p.state = 'live' then coalesce(l.targets, '') else '' end as targets
from (select distinct coalesce(page_id, -1) as page_id from graph_news) n
left join page p using (page_id)
left join link l using (page_id)
order by n.page_id;
comment on view news_in_graph is
    'The present state of each page in the news. Page -1 = the whole graph must be read again.';

grant execute on function reopen_news, begin_graph_read, end_graph_read to recrawl_worker;
grant select on page_in_graph, link_in_graph, score_in_graph, news_in_graph to recrawl_worker;
