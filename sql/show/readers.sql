-- Readers may read all views. For that they must have the right to execute the functions that the views call.

grant select on all tables in schema recrawl to recrawl_reader;
grant execute on function
    age_step, are_few_hosts, belief, belief_on, cells, clamped_frequency, crawl_now, died, due_follows_frequency,
    for_ever, frequency_in_force, frequency_of, gap_of, highest_frequency, host_gap, ids_skipped, is_never,
    largest_blocked_hosts, largest_host, may_become_due_earlier, names_allowed, next_slot, null_if_never,
    oldest_due, page_frequency, rate_interval, readable, run_is_dead, slot_every, slots_per_day, small_step,
    start_window, takes_part, times_per_day, unpacked
to recrawl_reader;
