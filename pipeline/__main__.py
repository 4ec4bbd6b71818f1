"""`python -m edgemill.pipeline`, the same as the command `edgemill`."""

from .cli import main

if __name__ == "__main__":
    main()
