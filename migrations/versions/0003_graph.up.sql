-- The graph: packed links, what changed of it, relevance, and the scores that the links give pages.

-- ---------------------------------------------------------------------------------------------- row types people see

create type recrawl.scored_page as (
    page_id   bigint,
    url       text,
    hub       real,
    authority real,
    relevance real
);
comment on type recrawl.scored_page is 'A page and what its place in the graph says of it; hub and authority are 1 on average, null before the first run of opic.';

-- ------------------------------------------------------------------------------------------------------- settings

alter table recrawl_internal.setting
    add column authority_weight real not null default 1
        constraint "authority_weight must lie between 0 and 1000"
        check (authority_weight between 0 and 1000),
    add column hub_weight real not null default 0
        constraint "hub_weight must lie between 0 and 1000"
        check (hub_weight between 0 and 1000),
    add column importance_weight real not null default 0
        constraint "importance_weight must lie between 0 and 1000"
        check (importance_weight between 0 and 1000),
    add column relevance_weight real not null default 0
        constraint "relevance_weight must lie between 0 and 1000"
        check (relevance_weight between 0 and 1000);
comment on column recrawl_internal.setting.authority_weight is 'weight: of a page''s authority in its value, from the next run of opic on; with all four at 0, values stay as they are.';
comment on column recrawl_internal.setting.hub_weight is 'weight: of a page''s hub score in its value.';
comment on column recrawl_internal.setting.importance_weight is 'weight: of a page''s importance (plain OPIC, near PageRank) in its value; it is worked out only if this is not 0.';
comment on column recrawl_internal.setting.relevance_weight is 'weight: of a page''s relevance in its value, beyond what it does for authority.';

-- ---------------------------------------------------------------------------------------------------------- pages

alter table recrawl_internal.page
    add column pinned_value real,
    add column relevance real,
    add column pinned_relevance real,
    add column sketch int[];
comment on column recrawl_internal.page.value is 'What its freshness is worth: pinned, or found by the job opic, or at first a part of the value of the page that linked to it.';
comment on column recrawl_internal.page.pinned_value is 'Where somebody who knows pinned it.';
comment on column recrawl_internal.page.relevance is 'How well it fits the crawl, 0 to 1, as last reported; null = unknown, which counts as one half.';
comment on column recrawl_internal.page.pinned_relevance is 'Where somebody who knows pinned it.';
comment on column recrawl_internal.page.sketch is 'Min-hash sketch of the last successful fetch.';
-- Until now nothing but add_pages gave values.
update recrawl_internal.page set pinned_value = value where value <> 1;

alter type recrawl_internal.result_element add attribute relevance float8, add attribute sketch int[];
alter type recrawl_internal.result add attribute relevance real, add attribute sketch int[];

-- ------------------------------------------------------------------------------------------------------- the graph

-- Eight bytes a link instead of an array's eight and a header: that is read three times as fast, because nothing is taken
-- apart on the way to the worker.
create function pg_temp.packed(targets bigint[]) returns bytea
language sql as $$ select coalesce(string_agg(int8send(t), '' order by t), '') from unnest(targets) t $$;
alter table recrawl_internal.link alter column targets type bytea using pg_temp.packed(targets);
drop function pg_temp.packed(bigint[]);
alter table recrawl_internal.link set (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
comment on column recrawl_internal.link.targets is 'Pages it links to, eight bytes each, the highest first: distinct, ascending, never itself.';
alter type recrawl_internal.found_links alter attribute targets type bytea;

-- Vacuum must not shorten it: that it is full is how a reader knows that more happened than it holds (see is_news_full()).
create table recrawl_internal.graph_news (
    page_id bigint
) with (vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
comment on table recrawl_internal.graph_news is 'Pages that came, left, link elsewhere or have another relevance since a worker last read the graph.';
comment on column recrawl_internal.graph_news.page_id is 'The page; null = too much for a list.';

create table recrawl_internal.graph_state (
    only_row       boolean primary key default true check (only_row),
    token          bigint,
    terms          jsonb,
    mean_relevance float8 not null default 0.5,
    first_share    float8 not null default 0.5
);
insert into recrawl_internal.graph_state default values;
comment on table recrawl_internal.graph_state is 'What the last run of the job opic leaves to the next, and to new pages.';
comment on column recrawl_internal.graph_state.only_row is 'Holds the table to one row.';
comment on column recrawl_internal.graph_state.token is 'The run that read graph_news last: whoever remembers its graph needs only the news since.';
comment on column recrawl_internal.graph_state.terms is 'The weights and the mean relevance that the values of all pages were last worked out with; null = they must be worked out again.';
comment on column recrawl_internal.graph_state.mean_relevance is 'Of all pages; unknown counts as one half.';
comment on column recrawl_internal.graph_state.first_share is 'What part of the value of the page that links to it a new page starts with.';

create table recrawl_internal.page_score (
    page_id    bigint primary key,
    hub        real not null,
    authority  real not null,
    importance real,
    in_links   real not null
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
comment on table recrawl_internal.page_score is 'What its place in the graph says of a page. Written by the job opic alone, where it moved by a hundredth.';
comment on column recrawl_internal.page_score.page_id is 'The page.';
comment on column recrawl_internal.page_score.hub is 'How good a list of links it is; 1 is the mean of all pages.';
comment on column recrawl_internal.page_score.authority is 'How much good lists link to it; 1 is the mean of all pages.';
comment on column recrawl_internal.page_score.importance is 'How often somebody who follows links at random would come by; 1 is the mean of all pages. Null = nobody asked for it.';
comment on column recrawl_internal.page_score.in_links is 'Pages that link to it.';

create table recrawl_internal.opic (
    token      bigint      primary key,
    started_at timestamptz not null,
    pages      bigint      not null,
    links      bigint      not null,
    is_full    boolean     not null,
    sweeps     int         not null,
    residual   float8      not null,
    converged  boolean     not null,
    cash       float8      not null,
    moved      bigint      not null,
    seconds    float8      not null
);
comment on table recrawl_internal.opic is 'Every run of the job opic that was written in full.';
comment on column recrawl_internal.opic.token is 'The run of the job.';
comment on column recrawl_internal.opic.started_at is 'When the graph was read.';
comment on column recrawl_internal.opic.pages is 'Pages of the graph: all that live.';
comment on column recrawl_internal.opic.links is 'Links between them.';
comment on column recrawl_internal.opic.is_full is 'Whether all of the graph was read, or only the news.';
comment on column recrawl_internal.opic.sweeps is 'How often cash went along every link, once each way; for importance, one way.';
comment on column recrawl_internal.opic.residual is 'A bound on how far the last sweep moved hub and authority scores, in all, each adding up to 1; of importance, if that is more.';
comment on column recrawl_internal.opic.converged is 'Whether the residual is as small as wanted; if not, the next run goes on from here.';
comment on column recrawl_internal.opic.cash is 'All cash: one for every page and one for the virtual page.';
comment on column recrawl_internal.opic.moved is 'Pages whose scores were written: new ones, and those that moved by a hundredth.';
comment on column recrawl_internal.opic.seconds is 'From reading the graph until everything was written.';

-- What changes its signature; and the view that comes anew with more columns in between.
drop function if exists
    recrawl_internal.intern_pages(timestamptz, text[], float8[], float8[], timestamptz[], jsonb[], int[]),
    recrawl_internal.intern_unknown(timestamptz, recrawl_internal.intern_item[]);
drop view if exists recrawl.page_status;
comment on column recrawl_internal.job.job is 'opic, rates or allocate.';
