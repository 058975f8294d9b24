"""Every page is in the index, and no link leads nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.kafka_jars import REPO_ROOT
from tests.support.markdown import anchors, links

DOCS = REPO_ROOT / "docs"
PAGES = [REPO_ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def target(page: Path, link: str) -> Path:
    path = link.partition("#")[0]
    return (page.parent / path).resolve() if path else page


def test_every_page_is_in_the_index() -> None:
    listed = {target(DOCS / "README.md", link) for link in links(DOCS / "README.md")}
    assert {page.name for page in DOCS.glob("*.md") if page not in listed} == {"README.md"}
    assert DOCS / "decisions" in listed
    assert DOCS / "README.md" in {target(PAGES[0], link) for link in links(PAGES[0])}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPO_ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        if "://" in link:
            continue
        found = target(page, link)
        assert found.exists(), link
        assert found.is_relative_to(REPO_ROOT), link
        if "#" in link and found.suffix == ".md":
            assert link.partition("#")[2] in anchors(found), link
