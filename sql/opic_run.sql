-- Runs of the job opic.

create or replace view recrawl.opic_run as
select started_at, pages, links, sweeps, residual, converged, cash, moved, is_full, seconds
from recrawl_internal.opic
order by started_at;
comment on view recrawl.opic_run is 'Every run of opic whose scores are in force.';
comment on column recrawl.opic_run.started_at is 'When the graph was read.';
comment on column recrawl.opic_run.pages is 'Pages of the graph: all that live.';
comment on column recrawl.opic_run.links is 'Links between them.';
comment on column recrawl.opic_run.sweeps is 'How often cash went along every link, once each way; for importance, one way.';
comment on column recrawl.opic_run.residual is 'A bound on how far the last sweep moved hub and authority scores, in all, each adding up to 1; of importance, if that is more.';
comment on column recrawl.opic_run.converged is 'Whether the residual is as small as wanted; if not, the next run goes on from here.';
comment on column recrawl.opic_run.cash is 'All cash: one for every page and one for the virtual page.';
comment on column recrawl.opic_run.moved is 'Pages whose scores were written: new ones, and those that moved by a hundredth.';
comment on column recrawl.opic_run.is_full is 'Whether all of the graph was read, or only what changed since the run before.';
comment on column recrawl.opic_run.seconds is 'From reading the graph until everything was written.';
