"""git as a shadow repository, and jj, which keeps its versions in one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from types import MappingProxyType

from bench.peer import Peer
from bench.process import Command


class Git(Peer):
    """git with its repository outside the workspace; it may not collect garbage by itself while it is timed."""

    name = "git"
    program = "git"
    note = "shadow repository outside the workspace, `git add -A` and `git commit`, automatic gc off; it syncs nothing"
    settings: Mapping[str, str] = MappingProxyType({})

    def variables(self) -> dict[str, str]:
        settings = {
            "user.name": "bench",
            "user.email": "bench@example.invalid",
            "init.defaultBranch": "main",
            "core.excludesFile": "/dev/null",
            "gc.auto": "0",
            "maintenance.auto": "false",
            **self.settings,
        }
        variables = {
            "GIT_DIR": f"{self.store}/repository.git",
            "GIT_WORK_TREE": str(self.workspace),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_COUNT": str(len(settings)),
        }
        for number, (key, value) in enumerate(settings.items()):
            variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        return variables

    def begin(self) -> Command:
        return ["git", "init", "-q"]

    def checkpoint(self, label: str) -> Command:
        return f"git add -A && git commit -q --no-verify --allow-empty -m {quote(label)}"

    def made(self, label: str, output: str) -> str:
        return self.run(["git", "rev-parse", "HEAD"]).output.strip()

    def rollback(self, checkpoint: str) -> Command:
        return f"git read-tree -u --reset {checkpoint} && git clean -fdxq"

    def restore(self, checkpoint: str, target: Path) -> Command:
        index = f"{self.store}/restore.index"  # its own, so that the workspace's index stays warm
        return (
            f"export GIT_INDEX_FILE={quote(index)} GIT_WORK_TREE={quote(str(target))}; rm -f {quote(index)}; "
            f"git read-tree {checkpoint} && git checkout-index -a -q"
        )

    def check(self) -> Command:
        return ["git", "fsck", "--full", "--no-progress", "--no-dangling"]

    def compact(self) -> Command:
        return ["git", "gc", "-q", "--aggressive", "--prune=now"]

    def record(self, workspace: Path, number: int) -> Command:
        return (
            f"export GIT_INDEX_FILE={quote(f'{self.store}/index{number}')} GIT_WORK_TREE={quote(str(workspace))}; "
            f"git add -A && commit=$(git commit-tree -m copy $(git write-tree)) && "
            f"git update-ref refs/heads/copy{number} $commit"
        )


class GitManyFiles(Git):
    """git with all that it has for large work trees, but a daemon."""

    name = "git-manyfiles"
    note = "the same with feature.manyFiles (index version 4, untracked cache) and threads over the index"
    settings = MappingProxyType(
        dict.fromkeys(
            ("feature.manyFiles", "core.untrackedCache", "core.preloadIndex", "index.threads", "index.skipHash"), "true"
        )
    )


class Jujutsu(Peer):
    """jj over a git repository of its own in the workspace."""

    name = "jj"
    program = "jj"
    note = (
        "its git repository within the workspace, `jj commit`; its rollback records the state before, as casnap's does"
    )
    inside = (".jj",)

    def variables(self) -> dict[str, str]:
        return {"JJ_CONFIG": str(self.home / "jj.toml")}

    def begin(self) -> Command:
        (self.home / "jj.toml").write_text(
            'user.name = "bench"\nuser.email = "bench@example.invalid"\n'
            'snapshot.max-new-file-size = 0\nui.paginate = "never"\nui.color = "never"\n',
            encoding="utf-8",
        )
        return ["jj", "git", "init", "--no-colocate", "--quiet", str(self.workspace)]

    def checkpoint(self, label: str) -> Command:
        return ["jj", "-R", str(self.workspace), "commit", "--quiet", "-m", label]

    def made(self, label: str, output: str) -> str:
        words = ["jj", "log", "--ignore-working-copy", "--no-graph", "-r", "@-", "-T", "commit_id"]
        return self.run(words).output.strip()

    def rollback(self, checkpoint: str) -> Command:
        return ["jj", "-R", str(self.workspace), "restore", "--quiet", "--from", checkpoint]

    def compact(self) -> Command:
        return ["jj", "-R", str(self.workspace), "util", "gc", "--ignore-working-copy", "--quiet"]
