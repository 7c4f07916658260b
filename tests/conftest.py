"""Options and fixtures that several test files share."""

import pytest


def pytest_addoption(parser):
    parser.addoption("--accept", action="store_true", help="rewrite the golden files with what the passes give now")


@pytest.fixture
def accept(request) -> bool:
    return request.config.getoption("--accept")
