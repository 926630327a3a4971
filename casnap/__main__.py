"""``python -m casnap``."""

from casnap.cli import main

if __name__ == "__main__":
    main()
