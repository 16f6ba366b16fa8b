-- What the job opic reads: the graph, whole or only what is news of it.

-- Before a read. No news is lost that a reader could not see in the tables: see is_news_full().
create or replace function recrawl_internal.reopen_news(token bigint, alive_for interval) returns boolean
language plpgsql volatile security definer
set search_path = recrawl_internal, pg_temp
set lock_timeout = '1s'
as $$
-- plans: lookups; writes graph_state, graph_news; locks job, graph_state, graph_news
begin
    perform keep_job(token, alive_for);
    if is_news_full() then
        update graph_state set token = null;
        begin
            truncate graph_news;
        exception when lock_not_available then
            return false;
        end;
    end if;
    return true;
end $$;
comment on function recrawl_internal.reopen_news(bigint, interval) is
    'Makes room for news where they are full; false if somebody has been adding pages for a second, and all must be '
    'read again next time too.';

-- The first statement of a REPEATABLE READ transaction that reads the graph. What is deleted is what its snapshot
-- shows, and the row of graph_state is its fence: a reader that another one has overtaken fails there.
create or replace function recrawl_internal.begin_graph_read(token bigint) returns bigint
language plpgsql volatile security definer
set search_path = recrawl_internal, pg_temp
as $$
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
    return last_token;
end $$;
comment on function recrawl_internal.begin_graph_read(bigint) is
    'Which run read the news last; from here on it is this one.';

create or replace function recrawl_internal.end_graph_read() returns bigint
language plpgsql volatile security definer
set search_path = recrawl_internal, pg_temp
as $$
-- plans: whole; writes graph_news; locks graph_news
declare
    known bigint;
begin
    delete from graph_news;
    get diagnostics known = row_count;
    return known;
end $$;
comment on function recrawl_internal.end_graph_read() is 'The news in this snapshot are known; returns how many.';

create or replace view recrawl_internal.page_in_graph as
select page_id, coalesce(pinned_relevance, relevance, 'NaN') as relevance
from recrawl_internal.page
where state = 'live';
comment on view recrawl_internal.page_in_graph is 'The pages of the graph; a relevance of NaN is unknown.';

create or replace view recrawl_internal.link_in_graph as
select page_id, targets
from recrawl_internal.link;
comment on view recrawl_internal.link_in_graph is
    'The links of the graph, packed; also from and to pages that are not in it any more.';

create or replace view recrawl_internal.score_in_graph as
select page_id, hub, authority, coalesce(importance, 'NaN') as importance, in_links
from recrawl_internal.page_score;
comment on view recrawl_internal.score_in_graph is 'The scores that were written last.';

-- A page that is not there any more is not live; one whose links are not known has none.
create or replace view recrawl_internal.news_in_graph as
select n.page_id,
       coalesce(p.state = 'live', false)::int as is_live,
       coalesce(p.pinned_relevance, p.relevance, 'NaN') as relevance,
       case when p.state = 'live' then coalesce(l.targets, '') else '' end as targets
from (select distinct coalesce(page_id, -1) as page_id from recrawl_internal.graph_news) n
left join recrawl_internal.page p using (page_id)
left join recrawl_internal.link l using (page_id)
order by n.page_id;
comment on view recrawl_internal.news_in_graph is
    'The present state of every page that the news are about; page -1 = all must be read again.';

grant execute on function
    recrawl_internal.reopen_news, recrawl_internal.begin_graph_read, recrawl_internal.end_graph_read
to recrawl_worker;
grant select on
    recrawl_internal.page_in_graph, recrawl_internal.link_in_graph, recrawl_internal.score_in_graph,
    recrawl_internal.news_in_graph
to recrawl_worker;
