"""Downloads of a command."""

from __future__ import annotations

import pytest

from mcphost.imports.downloads import downloads_of

DIGEST = "sha256:" + "0123456789abcdef" * 4
COMMIT = "0123456789" * 4


@pytest.mark.parametrize(
    ("line", "package", "registry", "version", "pinned"),
    [
        ("npx -y @x/y@1.2.3 --port 80", "@x/y", "npm", "1.2.3", True),
        ("npx @x/y", "@x/y", "npm", "", False),
        ("npx -y server@latest", "server", "npm", "latest", False),
        ("npx -y server@^1.2.0", "server", "npm", "^1.2.0", False),
        ("npx --yes --package=tool@2.0.0 -- run-it", "tool", "npm", "2.0.0", True),
        ("npx -p tool@2.0.0 run-it", "tool", "npm", "2.0.0", True),
        ("npm exec --yes -- server@1.0.0", "server", "npm", "1.0.0", True),
        ("pnpm dlx server@1.0.0", "server", "npm", "1.0.0", True),
        ("bunx --bun server", "server", "npm", "", False),
        ("bun x server", "server", "npm", "", False),
        ("npx github:ada/server", "github:ada/server", "GitHub", "", False),
        (f"npx ada/server#{COMMIT}", "ada/server", "GitHub", COMMIT, True),
        ("npx --registry https://npm.example/ server@1.0.0", "server", "https://npm.example/", "1.0.0", True),
        ("uvx mcp-server-git", "mcp-server-git", "PyPI", "", False),
        ("uvx mcp-server-git==2025.1.14", "mcp-server-git", "PyPI", "2025.1.14", True),
        ("uvx mcp-server-git@2025.1.14 -r .", "mcp-server-git", "PyPI", "2025.1.14", True),
        ("uvx mcp-server-git@latest", "mcp-server-git", "PyPI", "latest", False),
        ("uvx --python 3.12 mcp-server-git>=1", "mcp-server-git", "PyPI", ">=1", False),
        ("uvx --from mcp-tools[cli]==1.2 tool", "mcp-tools[cli]", "PyPI", "1.2", True),
        ("uvx --from git+https://github.com/ada/x tool", "git+https://github.com/ada/x", "github.com", "", False),
        (f"uvx --from git+https://github.com/ada/x@{COMMIT} tool", "git+https://github.com/ada/x", "github.com", COMMIT,
         True),
        ("uvx --index-url https://pypi.example/simple x==1", "x", "https://pypi.example/simple", "1", True),
        ("uv tool run x==1", "x", "PyPI", "1", True),
        ("uv run --with mcp==1.9.0 server.py", "mcp", "PyPI", "1.9.0", True),
        ("pipx run --spec tool==3 run-it", "tool", "PyPI", "3", True),
        ("pipx run tool", "tool", "PyPI", "", False),
        ("dnx My.Server@1.0.0 --yes -- x", "My.Server", "NuGet", "1.0.0", True),
        ("dotnet tool exec My.Server --version 1.0.0", "My.Server", "NuGet", "", False),
        (f"docker run --rm -i -e TOKEN mcp/git@{DIGEST}", "mcp/git", "Docker Hub", DIGEST, True),
        ("docker run -it --network host mcp/git:1.2", "mcp/git", "Docker Hub", "1.2", False),
        ("docker run -v /a:/b --name x ghcr.io/ada/x", "ghcr.io/ada/x", "ghcr.io", "", False),
        ("docker --context far container run localhost:5000/x:1", "localhost:5000/x", "localhost:5000", "1", False),
        ("podman run --rm -i quay.io/x/y:latest", "quay.io/x/y", "quay.io", "latest", False),
        ("deno run -A jsr:@ada/server@1.0.0", "@ada/server", "JSR", "1.0.0", True),
        ("deno run npm:server", "server", "npm", "", False),
        ("deno run https://deno.land/x/server.ts", "https://deno.land/x/server.ts", "deno.land", "", False),
        ("go run github.com/ada/x@v1.2.3", "github.com/ada/x", "the Go module proxy", "v1.2.3", True),
        ("go run github.com/ada/x@latest", "github.com/ada/x", "the Go module proxy", "latest", False),
        ("cmd /c npx -y server@1.0.0", "server", "npm", "1.0.0", True),
        ("env -u X A=b npx -y server@1.0.0", "server", "npm", "1.0.0", True),
        ("sudo -u ada npx -y server@1.0.0", "server", "npm", "1.0.0", True),
        ("C:\\node\\npx.cmd -y server@1.0.0", "server", "npm", "1.0.0", True),
        ("/usr/local/bin/npx -y server@1.0.0", "server", "npm", "1.0.0", True),
    ],
)  # fmt: skip
def test_a_runner_downloads_a_package(line: str, package: str, registry: str, version: str, pinned: bool) -> None:
    (found,) = downloads_of(line.split(" "), {})
    assert (found.package, found.registry, found.version, found.pinned) == (package, registry, version, pinned)


@pytest.mark.parametrize(
    "line",
    ["node server.js", "python -m server", "npx ./server", "uvx /home/ada/server", "uv run server.py", "go run .",
     "go run ./cmd/server", "deno run server.ts", "docker mcp gateway run", "docker compose run x", "npm run start",
     "npm start", "docker", "npx", "uvx --from", "docker run", "bash -c", "docker exec -i x server"],
)  # fmt: skip
def test_what_is_here_already_is_not_downloaded(line: str) -> None:
    assert downloads_of(line.split(), {}) == ()


def test_every_package_of_a_shell_s_script_is_listed() -> None:
    found = downloads_of(["bash", "-c", "cd /x && npx -y a@1.0.0 | uvx b; docker run c"], {})
    assert [each.package for each in found] == ["a", "b", "c"]


def test_several_packages_of_one_runner_are_listed() -> None:
    found = downloads_of(["uvx", "--with", "extra==1", "server==2"], {})
    assert [(each.package, each.version) for each in found] == [("server", "2"), ("extra", "1")]


def test_a_variable_of_the_entry_may_name_another_registry() -> None:
    (found,) = downloads_of(["npx", "x"], {"npm_config_registry": "https://ada:pw@npm.example"})
    assert found.registry == "https://npm.example"
    (found,) = downloads_of(["uvx", "x"], {"UV_INDEX_URL": "https://pypi.example"})
    assert found.registry == "https://pypi.example"


def test_the_sentence_says_whether_the_code_may_change() -> None:
    pinned, floating, tag = (
        downloads_of(line.split(), {})[0].sentence for line in ("npx a@1.0.0", "uvx a", "docker run a:1")
    )
    assert pinned == "a from npm, and runs it: always version 1.0.0"
    assert floating == "a from PyPI, and runs it; no version is pinned: the code can change at any start"
    assert "version 1 is not pinned" in tag


def test_a_name_with_hidden_characters_is_shown_with_marks() -> None:
    (found,) = downloads_of(["npx", "a\u202eb"], {})
    assert found.package == "a⟨U+202E⟩b"
