"""Run as ``python -m nsys_tui``."""

from nsys_tui.cli import main

raise SystemExit(main())
