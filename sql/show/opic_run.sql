-- opic_run: the runs of the job opic.

create or replace view recrawl.opic_run as
select started_at, pages, links, sweeps, residual, error, converged, cash, moved, seconds
from opic
order by started_at;
select describe_view('recrawl.opic_run',
    'One row for each run of the job opic that stored all its scores. The job opic gives each page some points, called '
    'cash, and moves the cash along the links. Pages that get much cash have high scores.');
