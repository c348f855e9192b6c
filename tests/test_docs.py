"""Every `python` and `sh` block of the documentation runs; so does the README's example.

Blocks of one page run in order, in a directory that is empty at first; those in Python share a namespace. What only
illustrates is `text`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs"))

import wrap  # noqa: E402

FENCE = re.compile(r"^```(?P<language>[^\n`]*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = sorted(
    [
        *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY")),
        *(ROOT / "docs").rglob("*.md"),
    ]
)
#: The commands of these are run by `.ci/run`: they install the package, and run this very suite.
SHELL_ELSEWHERE = {"README.md", "CONTRIBUTING.md"}
EXECUTED = {"python", "sh"}
ILLUSTRATION = {"text", "json", "toml", "yaml", "c"}


def blocks(page: Path) -> list[tuple[str, str, int]]:
    """Language, code and line of every fenced block; Sphinx's directives are no code."""
    text = page.read_text()
    found = [
        (match["language"].strip(), match["code"], text.count("\n", 0, match.start()) + 2)
        for match in FENCE.finditer(text)
    ]
    return [block for block in found if not block[0].startswith("{")]


def identify(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(b[0] in EXECUTED for b in blocks(page))], ids=identify
)
def test_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    namespace: dict[str, object] = {"__name__": "docs_page"}
    for language, code, line in blocks(page):
        if language == "python":
            # Empty lines in front, so that a traceback shows the line of the page.
            exec(compile("\n" * (line - 1) + code, str(page), "exec"), namespace)
        elif language == "sh" and page.name not in SHELL_ELSEWHERE:
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", code],
                env=os.environ | {"PATH": path},
                capture_output=True,
                text=True,
                timeout=500,
                check=False,
            )
            assert done.returncode == 0, f"{page}:{line}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=identify)
def test_every_block_says_what_it_is(page):
    unknown = [
        (language, line) for language, _, line in blocks(page) if language not in EXECUTED | ILLUSTRATION
    ]
    assert not unknown, f"{identify(page)}: use one of {sorted(EXECUTED | ILLUSTRATION)}, not {unknown}"


@pytest.mark.parametrize("page", PAGES, ids=identify)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), f"{identify(page)} links to {target}"


@pytest.mark.parametrize("page", wrap.pages(), ids=identify)
def test_prose_is_wrapped(page):
    text = page.read_text()
    assert wrap.wrap(text) == text, f"run `python docs/wrap.py {identify(page)}`"


def test_wrapping_keeps_what_is_no_prose():
    page = (
        "# A heading that stays " + "long " * 20 + "\n\n| a | table " + "wide " * 20 + "|\n|---|---|\n\n"
        "- an item of " + "many " * 25 + "words - and 1. a dash\n  its second line\n\n"
        "```text\n" + "code " * 30 + "\n```\nafter\nit\n"
    )
    done = wrap.wrap(page)
    assert wrap.wrap(done) == done
    assert done.split() == page.split()
    assert [line for line in done.splitlines() if len(line) > wrap.WIDTH] == [
        line for line in page.splitlines() if line.startswith(("# ", "| ", "code"))
    ]
    assert done.endswith("```\nafter it\n")
    assert "\n  many" in done


def test_the_readme_is_short_and_has_its_two_commands():
    readme = (ROOT / "README.md").read_text()
    commands = [code.strip() for language, code, _ in blocks(ROOT / "README.md") if language == "sh"]
    assert len(commands) == 2
    assert "pytest" in commands[1]
    (example,) = [code for language, code, _ in blocks(ROOT / "README.md") if language == "python"]
    assert len([line for line in example.splitlines() if line.strip()]) <= 12
    assert len(readme.splitlines()) < 60
