-- The graph of links between pages, and the scores of the job opic.

-- Eight bytes per link in one packed value per page. Compared with an array it is read three times as fast (PostgreSQL
-- 18, ADBC), because nothing is taken apart on the way to the worker.
create table recrawl_internal.link (
    page_id bigint primary key,
    targets bytea  not null
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
comment on table recrawl_internal.link is
    'Links of pages, one packed row per page that links. No row = unknown, an empty row = the page has no links.';
comment on column recrawl_internal.link.page_id is 'The page that links.';
comment on column recrawl_internal.link.targets is
    'Ids of the pages that it links to, eight bytes each, the highest byte first. Distinct, ascending, never its own.';

-- Vacuum must not shorten it: a reader knows by its size that more happened than it holds, see is_news_full().
create table recrawl_internal.graph_news (
    page_id bigint
) with (
    vacuum_truncate = off,
    autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0
);
alter table recrawl_internal.graph_news replica identity full;
comment on table recrawl_internal.graph_news is
    'Pages that changed in the graph since a worker last read it: they came, left, or have other links or another '
    'relevance.';
comment on column recrawl_internal.graph_news.page_id is 'The page; null = too many pages for a list.';

create table recrawl_internal.graph_state (
    only_row       boolean primary key default true check (only_row),
    token          bigint,
    terms          jsonb,
    mean_relevance float8  not null default 0.5,
    first_share    float8  not null default 0.5
);
insert into recrawl_internal.graph_state default values;
comment on table recrawl_internal.graph_state is
    'Results of the last run of the job opic that the next run and new pages need.';
comment on column recrawl_internal.graph_state.only_row is 'Holds the table to one row.';
comment on column recrawl_internal.graph_state.token is
    'The run that last read graph_news. A worker that remembers the graph of that run needs only the news since.';
comment on column recrawl_internal.graph_state.terms is
    'The weights and the mean relevance that all values were last computed with; null = they must be computed again.';
comment on column recrawl_internal.graph_state.mean_relevance is
    'Mean relevance of all pages. A page of unknown relevance counts as one half.';
comment on column recrawl_internal.graph_state.first_share is
    'A new page starts with this part of the value of the page that links to it.';

create table recrawl_internal.page_score (
    page_id    bigint primary key,
    hub        real   not null,
    authority  real   not null,
    importance real,
    in_links   real   not null
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
comment on table recrawl_internal.page_score is
    'Scores of pages by their place in the graph. Only the job opic writes them, when they moved by a hundredth.';
comment on column recrawl_internal.page_score.page_id is 'The page.';
comment on column recrawl_internal.page_score.hub is 'How good a list of links it is. 1 is the mean of all pages.';
comment on column recrawl_internal.page_score.authority is
    'How much good lists link to it. 1 is the mean of all pages.';
comment on column recrawl_internal.page_score.importance is
    'How often a reader who follows links at random would reach it. 1 is the mean of all pages. null = not computed.';
comment on column recrawl_internal.page_score.in_links is 'The number of pages that link to it.';

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
    seconds    float8      not null,
    error      float8
);
comment on table recrawl_internal.opic is 'Runs of the job opic that wrote all their scores.';
comment on column recrawl_internal.opic.token is 'The run of the job.';
comment on column recrawl_internal.opic.started_at is 'When the graph was read.';
comment on column recrawl_internal.opic.pages is 'Pages of the graph: all live pages.';
comment on column recrawl_internal.opic.links is 'Links between them.';
comment on column recrawl_internal.opic.is_full is 'True if the whole graph was read, false if only the news.';
comment on column recrawl_internal.opic.sweeps is
    'How often cash went along every link. One sweep goes both ways; for importance, one way.';
comment on column recrawl_internal.opic.residual is
    'A bound on the movement of the last sweep, in hub and authority scores that each add up to 1, or in importance if '
    'that moved more. The error may be a hundred times as large.';
comment on column recrawl_internal.opic.converged is
    'True if the error is as small as required. Otherwise the next run continues from here.';
comment on column recrawl_internal.opic.cash is 'All cash: 1 for every page and 1 for the virtual page.';
comment on column recrawl_internal.opic.moved is
    'Pages whose scores were written: new pages, and pages whose scores moved by a hundredth.';
comment on column recrawl_internal.opic.seconds is 'From reading the graph until everything was written.';
comment on column recrawl_internal.opic.error is
    'Estimated error of these scores, summed over all pages. Sweeps end when it is small enough. null = not estimated.';
