-- The two queues of hosts: one of hosts with revisits, one of hosts with new pages. Among revisits the host that has
-- been ready longest is first. Among new pages the best class of value is first, then the host that has been ready
-- longest.

-- The last class. It is for hosts whose revisits come first now: see new_pages_a_revisit(). Their new pages come last,
-- even if their values are high.
create or replace function last_class() returns int
language sql immutable parallel safe
return 32;

-- The class of a new page, from its rank (minus its value). Class 0: values from 2^19 up. Each next class: half the
-- value. Class 31: values below 2^-11. So two values of a class differ by less than a factor of two, except in the
-- classes 0 and 31. The classes span nine orders of magnitude (a factor of 2^30) around 1, because values that the job
-- opic computes are 1 on average.
--
-- A factor of four would need half of the classes and of their horizons (horizon.sql). It would cost a fifth of the
-- value. Measured with log-normal values and one page a host: the value of the pages that were handed out, divided by
-- the value of the best pages that waited, was .62 (σ = 1) and .73 (σ = 2) with a factor of four, and .81 and .89 with
-- a factor of two.
create or replace function value_class(rank real) returns smallint
language sql immutable parallel safe
return case when rank is not null then
           greatest(0, least(last_class() - 1, 19 - floor(
               ln(greatest(-rank::float8, least_amount())) / ln(2::float8))))::smallint
       end;

-- The rank of the least valuable page in a class of new pages.
create or replace function last_rank_of(class int) returns real
language sql immutable parallel safe
return case when class >= last_class() - 1 then 0 else -(2::float8 ^ (19 - class)) end::real;

-- How many new pages a host with due revisits may give for each revisit: 1.25 * discovery / (1 - discovery). A host
-- whose new pages are better than all others would otherwise give almost no revisits. Measured with 30 hosts and
-- discovery = 0.5: the best host gave 92 % new pages, and the allocation assumes 50 %. So each revisit of a host earns
-- it a credit. While revisits of the host wait, each new page spends 1 of it. When less than 1 is left, the new pages
-- of the host come last: last_class(). With discovery = 0.5 a revisit earns 1.25. If it earned 1, new pages would get
-- 0.46 of the slots (measured).
create or replace function new_pages_a_revisit(discovery real) returns real
language sql immutable parallel safe
return least(1.25 * discovery / nullif(1 - discovery, 0), 1e6)::real;

-- The number of new pages that a host may give before its next revisit, after it gave pages of either kind: a token
-- bucket. Revisits fill it. After `given` revisits it holds at most the credit that they earn, plus 1 for each of them.
-- So a host cannot save credit while nobody asks for its new pages. A new page takes 1 while revisits wait. If no
-- revisit waits, or discovery is 1, the bucket is filled as after one revisit.
create or replace function credit_after(
    credit real, of_new boolean, given bigint, revisits_wait boolean, discovery real
) returns real
language sql immutable parallel safe
return case when of_new and revisits_wait and discovery < 1 then greatest(credit, 0) - given
            when of_new then 1 + new_pages_a_revisit(discovery)
            else least(credit + given * new_pages_a_revisit(discovery),
                       greatest(given, 1) * (1 + new_pages_a_revisit(discovery))) end::real;

-- The class of a host in the queue of new pages: the class of its best new page, or 32 (the last) if its revisits come
-- first now. Null = the host has no new page.
create or replace function class_in_line(head_new_rank real, head_due timestamptz, new_credit float8, t timestamptz)
returns smallint
language sql immutable parallel safe
return case when head_due > t or new_credit >= 1 then value_class(head_new_rank)
            when head_new_rank is not null then last_class()::smallint end;

-- The place of a host in a queue of hosts after it gave pages: its place before, or the next place. A host is in both
-- queues of hosts, and next_pages chose it from one of them. Its place in the other queue stays if it is already due:
-- otherwise each new page would put the host behind all others in the queue of revisits, and each revisit would put it
-- behind all others in the queue of new pages. Example: a host gives a revisit at 12:00:30. Its next slot is at
-- 12:00:32.
--
--                         place before    next place    place after
--     queue of revisits   12:00:00        12:00:32      12:00:32    (it was chosen from this queue)
--     queue of new pages  11:59:00        12:00:32      11:59:00    (it keeps its turn)
--
-- Until the slot, each scan of the other queue reads this host and passes over it. That is cheap for a few seconds. So
-- the place stays only if the host is back soon: it waits for no leased page, and its next slot is at most 10 seconds
-- after the look-ahead.
create or replace function place_after_visit(
    place timestamptz, was_chosen boolean, is_back_soon boolean, next_place timestamptz, t timestamptz
) returns timestamptz
language sql immutable parallel safe
return case when place <= t and is_back_soon and not was_chosen then place else next_place end;
