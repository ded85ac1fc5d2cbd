"""`make bench`: what a job costs, end to end."""

from tests.bench.end_to_end import main

main()
