-- Rows that the functions of this folder pass to each other.

select make_type('ask', '(
    t timestamptz, slots_from timestamptz, slots_until timestamptz, head_due_until timestamptz, lease_ends timestamptz,
    per_host int, host_from timestamptz, draw numeric, first_class int, only_host bigint, s setting)',
    'One call of next_pages. t: the time of the call. slots_from, slots_until: the look-ahead; each slot lies in it. '
    'head_due_until: hosts whose first revisit becomes due later are not visited for revisits. lease_ends: the end of '
    'the lease. per_host: the most pages of a host, a million if there is no limit. host_from: no host is ready '
    'before this. draw: a number from 0 to 1 that replaces chance: over many calls that give pages, the draws are '
    'evenly spread. first_class: the class of new pages that is asked first. only_host: the host that the caller '
    'named; 0 = an unknown host, null = all hosts. s: the settings.');
select make_type('visits', '(
    due_hosts tid[], new_hosts tid[], due_pages int, new_pages int, due_exhausted boolean, new_exhausted boolean,
    worst_rank real)',
    'The hosts that a round of next_pages visits: due_hosts for revisits, new_hosts for new pages. due_pages, '
    'new_pages: the number of pages that they should give. due_exhausted, new_exhausted: the queue of hosts has no '
    'more hosts. New pages worse than worst_rank stay.');
select make_type('host_visited', '(
    host_tid tid, is_new boolean, given bigint, dropped bigint, last_start_by timestamptz, busy_until timestamptz,
    head_due timestamptz, head_new_rank real, head_new_id bigint)',
    'A host that was visited. is_new: it was chosen for new pages. given: pages that were handed out. dropped: pages '
    'that are no longer live. last_start_by: the end of its last slot; null if it gave no page. busy_until: the end '
    'of the lease, if the host is one_at_a_time and gave a page; otherwise null. head_due: the first due time of the '
    'pages of this visit; a page that was given has a new one. head_new_rank, head_new_id: no new page that stays is '
    'before this rank and id; null if none stays or the host was chosen for revisits.');
