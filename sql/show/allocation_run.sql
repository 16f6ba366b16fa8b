create or replace view recrawl.allocation_run as
select started_at,
       policy,
       objective,
       budget,
       spent,
       greatest(budget - spent - new_pages - coalesce(retries, 0), 0) as unspent,
       price,
       pages,
       hosts,
       capped_hosts,
       utility,
       polite_bound,
       unpolite_bound,
       residual,
       spread,
       duality_gap,
       polite_bound - utility as limits_cost,
       floor_days,
       seconds,
       new_pages,
       pinned,
       pinned_wanted,
       retries
from recrawl_internal.allocation
order by started_at;
comment on view recrawl.allocation_run is
    'Every allocation that came into force. budget, spent, new_pages, retries and unspent in fetches per day; utility '
    'and its bounds per unit of value; residual, spread and duality_gap prove that it is the optimum; floor_days: the '
    'longest interval that floors leave a page.';
select recrawl_internal.copy_comments('recrawl.allocation_run');
comment on column recrawl.allocation_run.spent is 'Fetches per day given to pages that were fetched before.';
comment on column recrawl.allocation_run.unspent is
    'Fetches per day for which the hosts'' gaps and the shortest interval left no use.';
comment on column recrawl.allocation_run.price is
    'What the last fetch of the budget earns per day; null = more than any number, as nothing is left for pages that '
    'change.';
comment on column recrawl.allocation_run.utility is
    'The objective reached, per unit of value; for freshness, the share of the value that is fresh. Null, as its '
    'bounds = a loss without limit: nothing is left for pages that change.';
comment on column recrawl.allocation_run.polite_bound is
    'What it could at most be within budget and gaps, without floors and ceilings.';
comment on column recrawl.allocation_run.limits_cost is
    'What exploration and the longest and shortest interval cost of the polite bound.';
comment on column recrawl.allocation_run.floor_days is
    'The longest interval in days that floors leave any page of a host that may be fetched.';
comment on column recrawl.allocation_run.seconds is 'From reading the pages until the prices were in force.';
grant select on recrawl.allocation_run to recrawl_reader;
