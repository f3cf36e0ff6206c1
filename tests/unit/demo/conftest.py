from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from demo_making import Demo, make

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    made = make(tmp_path_factory.mktemp("demo"))
    yield made
    made.connection.close()
