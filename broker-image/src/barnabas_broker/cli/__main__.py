"""`python -m barnabas_broker.cli`, where the `barnabas` script is not on the path."""

from barnabas_broker.cli.entry import main

if __name__ == "__main__":
    main()
