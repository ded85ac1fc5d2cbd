"""`python -m consumer` is the command `consumer`."""

from consumer.cli.main import main

main()
