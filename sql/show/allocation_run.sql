-- allocation_run: the runs of the job allocate.

create or replace view recrawl.allocation_run as
select started_at, policy, objective, budget, for_revisits,
       greatest(budget - for_revisits - for_new - coalesce(for_retries, 0), 0) as unused,
       price, pages, hosts, capped_hosts, utility, limit_with_gaps, limit_without_gaps, residual, spread, duality_gap,
       limit_with_gaps - utility as settings_cost,
       longest_days, seconds, for_new, pinned, pinned_wanted, for_retries
from allocation
order by started_at;
select describe_view('recrawl.allocation_run',
    'One row for each allocation that came into force, the oldest first. An allocation divides the budget between the '
    'pages. residual, spread and duality_gap prove that it is the best one: all three should be near 0.',
    'unused', 'Fetches per day of the budget that no page uses. The reasons: the gaps of hosts, the setting '
        'shortest_interval, pinned intervals, or the policy best_first.',
    'price', 'The smallest gain for which a page gets one more fetch per day. It counts for hosts that are not capped. '
        'null = infinite: the policy has no price (best_first, uniform, and epsilon_greedy at first), or the budget '
        'leaves nothing for pages that change.',
    'utility', 'The expected value of the objective, as a mean of all pages: pages with a higher value count more. If '
        'the objective is freshness, it is the share of the value that is fresh, 0 to 1. null stands for minus '
        'infinity: pages that change get no fetches. The same holds for null in limit_with_gaps and '
        'limit_without_gaps.',
    'settings_cost', 'How much utility the policy, the pinned intervals, and the settings exploration, '
        'longest_interval and shortest_interval cost: limit_with_gaps minus utility.',
    'longest_days', 'Each page without a pinned interval, on a host that is not blocked, is fetched at least once in '
        'this number of days; null = there is no minimum.');
