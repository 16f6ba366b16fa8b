-- The graph of links between pages, and the scores of the job opic.

-- Eight bytes per link in one packed value per page. Compared with an array it is read three times as fast (PostgreSQL
-- 18, ADBC), because nothing is taken apart on the way to the worker.
create table recrawl_internal.link (
    page_id bigint primary key,
    targets bytea  not null
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
comment on table recrawl_internal.link is
    'The links of each page, packed into one row per page. No row = the links are unknown. An empty row = the page '
    'has no links.';
comment on column recrawl_internal.link.page_id is 'The page that has the links.';
comment on column recrawl_internal.link.targets is
    'The ids of the pages that it links to: eight bytes each, the highest byte first, in ascending order. No id '
    'occurs twice. The page itself does not occur.';

-- Vacuum must not truncate the table: its size tells is_news_full() that news were left out.
create table recrawl_internal.graph_news (
    page_id bigint
) with (
    vacuum_truncate = off,
    autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0
);
alter table recrawl_internal.graph_news replica identity full;
comment on table recrawl_internal.graph_news is
    'Pages whose place in the graph changed since a worker last read the graph: they were added or removed, or have '
    'other links or another relevance.';
comment on column recrawl_internal.graph_news.page_id is
    'The page. A row with null says that too many pages changed, so the whole graph must be read again.';

create table recrawl_internal.graph_state (
    only_row       boolean primary key default true check (only_row),
    token          bigint,
    terms          jsonb,
    mean_relevance float8  not null default 0.5,
    first_share    float8  not null default 0.5
);
insert into recrawl_internal.graph_state default values;
comment on table recrawl_internal.graph_state is
    'Results of the last run of the job opic that the next run and new pages need. The table has one row.';
comment on column recrawl_internal.graph_state.only_row is 'Always true, so that the table has only one row.';
comment on column recrawl_internal.graph_state.token is
    'The run that last read graph_news. A worker that still has the graph of this run reads only the news since '
    'then.';
comment on column recrawl_internal.graph_state.terms is
    'The weights and the mean relevance that all values were computed with; null = all values must be computed '
    'again.';
comment on column recrawl_internal.graph_state.mean_relevance is
    'The mean relevance of all pages. Unknown relevance counts as 0.5.';
comment on column recrawl_internal.graph_state.first_share is
    'The first value of a new page is the value of the page that links to it, times this number.';

create table recrawl_internal.page_score (
    page_id    bigint primary key,
    hub        real   not null,
    authority  real   not null,
    importance real,
    in_links   real   not null
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
comment on table recrawl_internal.page_score is
    'Scores of pages from the graph of links. Only the job opic writes them, if they changed by more than 1 %.';
comment on column recrawl_internal.page_score.page_id is 'The page.';
comment on column recrawl_internal.page_score.hub is
    'High if the page links to good pages; 1 is the mean of all pages.';
comment on column recrawl_internal.page_score.authority is
    'High if good pages link to the page; 1 is the mean of all pages.';
comment on column recrawl_internal.page_score.importance is
    'How often a reader who follows links at random reaches the page; 1 is the mean of all pages. null = not '
    'computed.';
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
comment on table recrawl_internal.opic is 'One row for each run of the job opic that stored all its scores.';
comment on column recrawl_internal.opic.token is 'The run of the job.';
comment on column recrawl_internal.opic.started_at is 'The time when the graph was read.';
comment on column recrawl_internal.opic.pages is 'The number of pages in the graph: all pages in the crawl.';
comment on column recrawl_internal.opic.links is 'The number of links between these pages.';
comment on column recrawl_internal.opic.is_full is
    'True if the whole graph was read, false if only the changes were read.';
comment on column recrawl_internal.opic.sweeps is
    'How often cash was moved along all links. For hub and authority scores one sweep goes along each link in both '
    'directions, for importance in one direction.';
comment on column recrawl_internal.opic.residual is
    'How much the scores still changed in the last sweep: the sum of the changes of all pages is at most this number. '
    'For this sum, scores are scaled so that all of them add up to 1. The error of the scores may be a hundred times '
    'larger.';
comment on column recrawl_internal.opic.converged is
    'True if the error is as small as required. Otherwise the next run continues with these scores.';
comment on column recrawl_internal.opic.cash is
    'The sum of all cash: 1 for each page, and 1 for the virtual page. The virtual page is no URL. It is linked with '
    'all pages, so that cash can leave pages without links.';
comment on column recrawl_internal.opic.moved is
    'The number of pages whose scores were written: new pages, and pages whose scores changed by more than 1 %.';
comment on column recrawl_internal.opic.seconds is 'Time from reading the graph until everything was written.';
comment on column recrawl_internal.opic.error is
    'The estimated error of the scores, added up over all pages. The sweeps end when it is small enough. null = it '
    'was not estimated.';
