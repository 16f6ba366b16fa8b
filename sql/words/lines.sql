-- Hosts stand in two lines: one of due revisits, first come first served, and one of new pages, the best class of value
-- first and in it first come first served.

-- A value is less than twice any other in its class. Values are 1 on average where opic finds them; there are eleven
-- orders of magnitude from the best class to the last.
create or replace function recrawl_internal.value_class(rank real) returns smallint
language sql immutable parallel safe
as $$
    select case when rank is not null then
               greatest(0, least(31, 19 - floor(ln(greatest(-rank::float8, 1e-30)) / ln(2::float8))))::smallint
           end
$$;
comment on function recrawl_internal.value_class(real) is
    'The class of a new page by its rank: 0 from 2^19 up, then a factor of two each, 31 below 2^-11.';

create or replace function recrawl_internal.worst_rank_of(class int) returns real
language sql immutable parallel safe
as $$
    select case when class >= 31 then 0 else -(2::float8 ^ (19 - class)) end::real
$$;
comment on function recrawl_internal.worst_rank_of(int) is
    'The rank of the least valuable page in a class of new pages.';

-- Line 2 may not take all slots of a host whose new pages are better than all others'.
create or replace function recrawl_internal.new_pages_a_revisit(discovery real) returns real
language sql immutable parallel safe
as $$
    select least(2 * discovery / nullif(1 - discovery, 0), 1e6)::real
$$;
comment on function recrawl_internal.new_pages_a_revisit(real) is
    'How many new pages a host with due revisits may give for each of them: at most twice the share of new pages.';

create or replace function recrawl_internal.open_class(
    head_new_rank real, head_due timestamptz, new_credit float8, t timestamptz
) returns smallint
language sql immutable parallel safe
as $$
    select case when head_due > t or new_credit >= 1 then recrawl_internal.value_class(head_new_rank) end
$$;
comment on function recrawl_internal.open_class(real, timestamptz, float8, timestamptz) is
    'The class in which a host stands in the line of new pages; null = it has none, or it is the revisits'' turn.';

create or replace function recrawl_internal.slots_end(
    t timestamptz, slots_until timestamptz, per_host int, step interval
) returns timestamptz
language sql stable parallel safe
as $$
    select least(slots_until, t + per_host * step - interval '1 microsecond')
$$;
comment on function recrawl_internal.slots_end(timestamptz, timestamptz, int, interval) is
    'No slot of a host is later: the caller looks no further ahead, or would get more than per_host pages of it.';
