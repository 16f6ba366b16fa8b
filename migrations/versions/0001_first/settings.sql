-- Settings: one row, a typed column each. set_setting() writes it and the view settings shows it.
--
-- * The comment of a column is `unit: meaning`.
-- * The name of a constraint is the error message. If it ends with `must be one of`, set_setting() lists the values
--   that the constraint allows after it.
-- * Intervals are given in hours and less, because the length of a day depends on the session's time zone and the
--   length of a month depends on the month. (Ten years are 3,600 days as an interval, and 3,652.5 days in seconds.)

create table recrawl_internal.setting (
    only_row           boolean  primary key default true check (only_row),
    paused             boolean  not null default false,
    claimed_by         text
                       constraint "claimed_by must have 1 to 200 characters"
                       check (length(claimed_by) between 1 and 200),

    -- politeness
    default_gap        interval not null default '1 second'
                       constraint "default_gap must lie between 1 millisecond and 30 days"
                       check (default_gap between '1 millisecond' and '30 days'),
    default_gap_since  timestamptz not null default '-infinity',
    window_share       real     not null default 0.1
                       constraint "window_share must lie between 0 and 1"
                       check (window_share between 0 and 1),
    max_ahead          interval not null default '1 minute'
                       constraint "max_ahead must lie between 0 and 10 minutes"
                       check (max_ahead between '0' and '10 minutes'),

    -- new pages and failing pages
    discovery          real     not null default 0.5
                       constraint "discovery must lie between 0 and 1"
                       check (discovery between 0 and 1),
    breadth            real     not null default 0.02
                       constraint "breadth must lie between 0 and 1"
                       check (breadth between 0 and 1),
    frequency          real     not null default 1
                       constraint "frequency must lie between 0.003 and 86400"
                       check (frequency between 0.003 and 86400),
    max_attempts       int      not null default 5
                       constraint "max_attempts must be positive"
                       check (max_attempts > 0),
    max_depth          int
                       constraint "max_depth must be 0 or more links, or none"
                       check (max_depth >= 0),
    max_pages_per_host int
                       constraint "max_pages_per_host must be 0 or more pages, or none"
                       check (max_pages_per_host >= 0),

    -- limits of a login of crawlers
    longest_lease      interval not null default '24 hours'
                       constraint "longest_lease must lie between 1 second and 7 days"
                       check (longest_lease between '1 second' and '168 hours'),
    max_per_call       int      not null default 10000
                       constraint "max_per_call must lie between 1 and 1000000 pages"
                       check (max_per_call between 1 and 1000000),
    max_leased_per_login         int      default 1000000
                       constraint "max_leased_per_login must be positive, or none"
                       check (max_leased_per_login > 0),
    full_logins        text[],
    max_unknown_hosts      int      not null default 10000
                       constraint "max_unknown_hosts must lie between 0 and 1e6 hosts per minute"
                       check (max_unknown_hosts between 0 and 1000000),
    ends_without_lease boolean  not null default true,

    -- allocation
    budget             float8
                       constraint "budget must lie between 1e-6 and 1e12 fetches per day, or none"
                       check (budget between 1e-6 and 1e12),
    budget_is_measured boolean  not null default false,
    policy             text     not null default 'opt_polite'
                       constraint "policy must be one of"
                       check (policy in ('opt_polite', 'optimal', 'uniform', 'proportional', 'best_first',
                                         'epsilon_greedy')),
    objective          text     not null default 'freshness'
                       constraint "objective must be one of"
                       check (objective in
                              ('freshness', 'new_content', 'poisson_freshness', 'harmonic', 'delay', 'age')),
    exploration        real     not null default 0.05
                       constraint "exploration must lie between 0 and 0.5"
                       check (exploration between 0 and 0.5),
    longest_interval   interval default '1440 hours'
                       constraint "longest_interval must lie between 1 minute and 10 years"
                       check (longest_interval between '1 minute' and '87660 hours'),
    shortest_interval  interval default '5 minutes'
                       constraint "shortest_interval must lie between 1 second and 30 days"
                       check (shortest_interval between '1 second' and '30 days'),

    -- what is kept
    keep_log           interval
                       constraint "keep_log must lie between 1 minute and 10 years"
                       check (keep_log between '1 minute' and '87660 hours'),
    keep_vitals        interval not null default '48 hours'
                       constraint "keep_vitals must lie between 3 hours and 400 days"
                       check (keep_vitals between '3 hours' and '400 days'),
    keep_history       interval not null default '9600 hours'
                       constraint "keep_history must lie between 1 day and 100 years"
                       check (keep_history between '1 day' and '100 years'),

    -- jobs
    rates_every        interval default '6 hours'
                       constraint "rates_every must lie between 10 seconds and 10 years"
                       check (rates_every between '10 seconds' and '87660 hours'),
    opic_every         interval default '6 hours'
                       constraint "opic_every must lie between 10 seconds and 10 years"
                       check (opic_every between '10 seconds' and '87660 hours'),
    allocate_every     interval default '1 hour'
                       constraint "allocate_every must lie between 10 seconds and 10 years"
                       check (allocate_every between '10 seconds' and '87660 hours'),
    memory             real     not null default 500
                       constraint "memory must lie between 0 and 1e6 megabytes"
                       check (memory between 0 and 1e6),
    authority_weight   real     not null default 1
                       constraint "authority_weight must lie between 0 and 1000"
                       check (authority_weight between 0 and 1000),
    hub_weight         real     not null default 0
                       constraint "hub_weight must lie between 0 and 1000"
                       check (hub_weight between 0 and 1000),
    importance_weight  real     not null default 0
                       constraint "importance_weight must lie between 0 and 1000"
                       check (importance_weight between 0 and 1000),
    relevance_weight   real     not null default 0
                       constraint "relevance_weight must lie between 0 and 1000"
                       check (relevance_weight between 0 and 1000),
    constraint "longest_interval must not be shorter than shortest_interval"
    check (longest_interval >= shortest_interval)
);
insert into recrawl_internal.setting default values;
comment on table recrawl_internal.setting is
    'The settings. The table has one row, and a typed column for each setting. The comment of a column begins with '
    'the unit.';
comment on column recrawl_internal.setting.only_row is 'Always true, so that the table has only one row.';
comment on column recrawl_internal.setting.paused is
    'boolean: while this is true, next_pages hands out nothing. pause() and resume() set it.';
comment on column recrawl_internal.setting.claimed_by is
    'name: the owner of the crawl, set by the first call of claim(). none = there is no owner.';
comment on column recrawl_internal.setting.default_gap is
    'interval: the least time between two requests to one host. set_host can set another gap for a host. If you set a '
    'shorter default_gap, each host uses it after its next request.';
comment on column recrawl_internal.setting.default_gap_since is
    'time: when default_gap last became longer. A slot from before this time that was released is not used again, '
    'because it may be too close to the next slot.';
comment on column recrawl_internal.setting.window_share is
    'share: how late a request may start, as a part of the gap of its host, but at most 2 seconds. The time between '
    'two slots is the gap plus this time.';
comment on column recrawl_internal.setting.max_ahead is
    'interval: the longest time that crawlers may look ahead (the argument ahead of next_pages).';
comment on column recrawl_internal.setting.discovery is
    'share: the part of all fetches that new pages get while other pages are due too.';
comment on column recrawl_internal.setting.breadth is
    'share: in this part of its calls next_pages begins with new pages of a lower value. So these pages are fetched '
    'at some time too.';
comment on column recrawl_internal.setting.frequency is
    'fetches per day: how often a page is fetched before the first allocation. If there is no budget, it is the '
    'average of all pages after the first allocation.';
comment on column recrawl_internal.setting.max_attempts is
    'attempts: after this number of failures in a row a page gets no share of the budget. recrawl still tries it, '
    'less and less often.';
comment on column recrawl_internal.setting.max_depth is
    'links: the most links between the start of the crawl and a page. A page that is farther away is not added. none '
    '= no limit.';
comment on column recrawl_internal.setting.max_pages_per_host is
    'pages: the most pages of one host. set_host can set another limit for one host. none = no limit.';
comment on column recrawl_internal.setting.longest_lease is
    'interval: the longest lease that next_pages gives. extend_lease can move the end of a lease to at most now plus '
    'longest_lease plus max_ahead.';
comment on column recrawl_internal.setting.max_per_call is
    'pages: the most pages that one call of next_pages may ask for.';
comment on column recrawl_internal.setting.max_leased_per_login is
    'pages: the most pages that one login may have leased at a time. A login that leases more than a tenth of this '
    'number within half a second can exceed it. none = no limit.';
comment on column recrawl_internal.setting.full_logins is
    'logins: the logins that had at least nine tenths of max_leased_per_login when upkeep last counted. next_pages '
    'counts the leased pages of these logins itself.';
comment on column recrawl_internal.setting.max_unknown_hosts is
    'hosts per minute: the most unknown hosts that all crawlers together may name in take_slot and set_robots. The '
    'hosts of pages and links do not count here.';
comment on column recrawl_internal.setting.ends_without_lease is
    'boolean: true = a report without lease_id may stop or postpone the fetches of a page: with the status 410, with '
    'a permanent redirect, with declined or with due. false = such a report is invalid.';
comment on column recrawl_internal.setting.budget is
    'fetches per day: the number of fetches that you can afford, for new pages and others together. none = no limit '
    'for new pages, and other pages are fetched as often as the setting frequency says, on average. measured = '
    'recrawl finds the number that your crawlers can manage. It raises the budget while crawlers get fewer pages than '
    'they ask for, and lowers it while pages wait for crawlers.';
comment on column recrawl_internal.setting.budget_is_measured is
    'boolean: true if set_setting(''budget'', ''measured'') was called. Then recrawl sets the budget itself.';
comment on column recrawl_internal.setting.policy is
    'name: how the next allocation divides the budget. opt_polite: the best result that the gaps of the hosts allow. '
    'optimal: the best result if hosts had no gaps. uniform: all pages equally often. proportional: each page in '
    'proportion to its rate. best_first: each page once, the most valuable first. epsilon_greedy: uniform at first, '
    'then opt_polite.';
comment on column recrawl_internal.setting.objective is
    'name: the quantity that the next allocation maximises. docs/how-often.md explains each of them.';
comment on column recrawl_internal.setting.exploration is
    'share: the part of the budget that is divided evenly between all pages. So pages that gain little from a fetch '
    'are fetched too.';
comment on column recrawl_internal.setting.longest_interval is
    'interval: each page is fetched at least once in this time. This minimum takes at most half of the budget and '
    'half of the slots of a host. If it would need more, pages are fetched less often. none = no minimum.';
comment on column recrawl_internal.setting.shortest_interval is
    'interval: the least time between two fetches of a page. It does not count if a crawler or an operator sets the '
    'due time. none = no limit.';
comment on column recrawl_internal.setting.keep_log is
    'interval: how long recrawl keeps the log of fetches, which the command recrawl audit reads. none = there is no '
    'log.';
comment on column recrawl_internal.setting.keep_vitals is
    'interval: how long the view vitals keeps its rows (one per minute).';
comment on column recrawl_internal.setting.keep_history is
    'interval: how long recrawl keeps vitals_by_hour, events, texts of robots.txt and runs of jobs. The last run of '
    'each job is always kept.';
comment on column recrawl_internal.setting.rates_every is
    'interval: the time between two runs of the job rates, which learns how often the pages of each host change. At '
    'the start of a crawl it also runs after 10, 20, 40 … minutes. none = never.';
comment on column recrawl_internal.setting.opic_every is
    'interval: the time between two runs of the job opic, which scores pages by their links. It also runs when 5 % of '
    'the pages have new links. none = never.';
comment on column recrawl_internal.setting.allocate_every is
    'interval: the time between two runs of the job allocate, which divides the budget. It also runs when the budget, '
    'the pages, values, rates or slots changed by 5 %. none = never.';
comment on column recrawl_internal.setting.memory is
    'megabytes: the most memory in which a worker keeps the links between two runs of the job opic. The next run then '
    'reads only the changes. Links that need more memory are read again in each run.';
comment on column recrawl_internal.setting.authority_weight is
    'weight: how much the authority of a page counts in its value, from the next run of opic. If all four weights '
    'are 0, values stay as they are.';
comment on column recrawl_internal.setting.hub_weight is
    'weight: how much the hub score of a page counts in its value.';
comment on column recrawl_internal.setting.importance_weight is
    'weight: how much the importance of a page (plain OPIC, similar to PageRank) counts in its value. At 0 '
    'importance is not computed.';
comment on column recrawl_internal.setting.relevance_weight is
    'weight: how much the relevance of a page counts directly in its value. It also counts in the authority of pages.';
