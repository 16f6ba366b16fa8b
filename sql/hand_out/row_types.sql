-- Rows that the functions of this folder pass to each other. They hold no state: `recrawl migrate` drops a type that
-- changed, with the functions that use it, and makes all of them again.

do $$
begin
    if to_regtype('recrawl_internal.visits') is null then
        create type recrawl_internal.visits as (
            due_hosts  tid[],
            new_hosts  tid[],
            due_pages  int,
            new_pages  int,
            due_short  boolean,
            new_short  boolean,
            worst_rank real
        );
    end if;

    if to_regtype('recrawl_internal.slot_of_host') is null then
        create type recrawl_internal.slot_of_host as (
            host_id  bigint,
            slot     timestamptz,
            start_by timestamptz
        );
    end if;
end $$;

comment on type recrawl_internal.visits is
    'The hosts that a round of next_pages visits, from each line, and the number of pages that they should give; '
    'whether a line has no more hosts. New pages worse than worst_rank stay.';
comment on type recrawl_internal.slot_of_host is 'A time in which a request to a host may start.';
