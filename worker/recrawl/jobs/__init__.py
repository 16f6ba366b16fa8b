"""The jobs, and questions of the command line that read the same data.

    jobs                         upkeep, vitals, retention, rates, opic, allocate
    questions                    compare, plan: they change nothing, and the worker does not run them
    what they read               allocation_input
    how the worker runs jobs     registry (the list of jobs), job, clock, running, child

The worker runs the jobs again and again, and `recrawl run` runs one once.
"""
