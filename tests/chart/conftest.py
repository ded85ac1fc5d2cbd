from collections.abc import Iterator

import helm_python
import pytest

from tests.chart.rendering import CHART, Release, example, render


@pytest.fixture(scope="session")
def chart() -> Iterator[helm_python.Chart]:
    with helm_python.Chart.load(CHART) as loaded:
        yield loaded


@pytest.fixture(scope="session")
def default(chart: helm_python.Chart) -> Release:
    return render(chart)


@pytest.fixture(scope="session")
def production(chart: helm_python.Chart) -> Release:
    """Everything that the chart can make."""
    return render(chart, example(CHART / "ci" / "production-values.yaml"))


@pytest.fixture(scope="session")
def sqlite(chart: helm_python.Chart) -> Release:
    return render(chart, example(CHART / "ci" / "sqlite-values.yaml"))
