"""A repository whose owner is not our friend: whatever git can be configured to start leaves a mark."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from tests.sagas.trees import write
from tests.sagas.worlds import World

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from adapters.config import Settings

HOOKS = (
    *(
        "applypatch-msg",
        "commit-msg",
        "fsmonitor-watchman",
        "post-applypatch",
        "post-checkout",
        "post-commit",
    ),
    *("post-index-change", "post-merge", "post-receive", "post-rewrite", "post-update", "pre-applypatch"),
    *("pre-auto-gc", "pre-commit", "pre-merge-commit", "pre-push", "pre-rebase", "pre-receive"),
    *(
        "prepare-commit-msg",
        "proc-receive",
        "push-to-checkout",
        "reference-transaction",
        "sendemail-validate",
    ),
    *("update",),
)
COMMANDS = (  # that we use, and some that those could start
    *("cat-file", "checkout", "config", "diff", "diff-files", "diff-index", "fast-import", "fetch"),
    *("for-each-ref", "gc", "hash-object", "index-pack", "log", "ls-files", "ls-tree", "maintenance"),
    *("pack-objects", "read-tree", "reset", "rev-list", "rev-parse", "show", "status", "submodule"),
    *("symbolic-ref", "update-index", "update-ref", "version", "worktree", "write-tree"),
)
IN_PATH = (  # also programs that scripts of git, or a shell, would look for
    *("sh", "bash", "env", "cat", "less", "more", "vi", "vim", "nano", "perl", "python3", "ssh", "scp"),
    *("gpg", "gpg2", "gpgsm", "ssh-keygen", "ssh-askpass", "curl", "sed", "touch", "true", "git", "git-lfs"),
    *("git-remote-evil", "git-remote-ext", "git-remote-https", "git-credential-evil", "git-evil", "editor"),
    *(f"git-{command}" for command in COMMANDS),
)
ODD = 'o=d"d\\.clean'  # a name of a filter that is hard to pass on


class Started(msgspec.Struct, frozen=True):
    """One start of the git program: by which process, with which arguments."""

    parent: int
    arguments: tuple[bytes, ...]


class Trap(World):
    """A world in which everything but git is a program that leaves a mark, once it is armed.

    Its yard calls git through a program that writes down every start.
    """

    def __init__(self, home: Path, *options: str) -> None:
        super().__init__(home, *options)
        self.bin = home / "bin"
        self.bin.mkdir()
        for name in IN_PATH:
            self.marker(self.bin / name, f"path:{name}")
        self._starts = home / "starts"
        git = subprocess.run(["which", "git"], capture_output=True, check=True, text=True).stdout.strip()
        self.program = str(home / "git-itself")
        record = f"""printf '%s\\0' "$PPID" "$#" "$@" >>'{self._starts}'"""
        (home / "git-itself").write_text(f'#!/bin/sh\n{record}\nexec {git} "$@"\n')
        (home / "git-itself").chmod(0o755)

    @property
    def caught(self) -> dict[str, str]:
        """Returns an environment in which only what leaves a mark is found, and every tool is named."""
        named = {tool: self.program_of(f"environment:{tool}") for tool in TOOLS}
        return self.environment | named | {"PATH": str(self.bin)}

    @property
    def settings(self) -> Settings:
        return msgspec.structs.replace(super().settings, environment=self.caught)

    def marker(self, path: Path, mark: str) -> Path:
        """Writes a program that leaves a mark. It needs no other program."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\necho '{mark}' >>'{self.home / 'marks'}'\n")
        path.chmod(0o755)
        return path

    def program_of(self, mark: str) -> str:
        """Returns the path of a program that leaves this mark."""
        return str(self.marker(self.home / "programs" / mark.replace("/", "-"), mark))

    def command(self, mark: str) -> str:
        """Returns a shell's command that leaves this mark, and passes on what it is given."""
        copy = "while IFS= read -r line; do printf '%s\\n' \"$line\"; done"
        return f"echo '{mark}' >>'{self.home / 'marks'}'; {copy}"

    def user(self, place: bytes, *arguments: str) -> None:
        """Runs plain git as a user does whose settings are those that were armed; it may fail."""
        environment = {
            name: value for name, value in self.environment.items() if not name.startswith("GIT_CONFIG")
        }
        subprocess.run(
            ["git", *arguments],
            cwd=place,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=60,
        )

    def marks(self) -> set[str]:
        """Returns the marks that were left, and wipes them away."""
        path = self.home / "marks"
        found = set(path.read_text().splitlines()) if path.exists() else set()
        path.unlink(missing_ok=True)
        return found

    def starts(self) -> list[Started]:
        """Returns every start of git by our programs so far."""
        words = self._starts.read_bytes().split(b"\0")[:-1] if self._starts.exists() else []
        found = []
        while words:
            parent, count, *rest = words
            found.append(Started(int(parent), tuple(rest[: int(count)])))
            words = rest[int(count) :]
        return found

    def configure(self, file: Path, settings: dict[str, str]) -> None:
        """Adds settings to a configuration file."""
        file.parent.mkdir(parents=True, exist_ok=True)
        for name, value in settings.items():
            subprocess.run(
                ["git", "config", "--file", file, "--add", name, value], check=True, env=self.environment
            )

    def attribute(self, place: bytes) -> None:
        """Commits attributes that send every file through something, and the files."""
        names = (*SCOPES, "needed", "forged", "zproc")
        lines = [f"*.{name} filter={name} diff={name} merge={name}" for name in names]
        lines += [
            f"*.odd filter={ODD}",
            "*.utf16 working-tree-encoding=UTF-16LE",
            "*.id ident",
            "* text=auto",
        ]
        write(os.path.join(place, b".gitattributes"), "\n".join([*lines, ""]).encode())
        for name in (*names, "odd", "utf16", "id", "txt"):
            write(
                os.path.join(place, f"some.{name}".encode()),
                b"$Id$\r\na\0b\0" if name == "utf16" else b"$Id$\n",
            )
        self.git(place, "add", ".")
        self.git(place, "commit", "-q", "-m", "attributes")

    def arm(self, admin: bytes | None = None) -> None:
        """Configures everything in every file that git reads for this repository, or for this worktree."""
        common, home = self.home / "root/.git", self.home
        for hook in HOOKS:
            self.marker(common / "hooks" / hook, f"hook:{hook}")
        self.configure(home / ".gitconfig", self.settings_of("user"))
        self.configure(home / "git/config", self.settings_of("xdg"))
        self.configure(common / "config", self.settings_of("local") | REPOSITORY)
        self.configure(home / "included", self.settings_of("included"))
        self.configure(home / "conditional", self.settings_of("conditional"))
        self.configure(common / "config", {"include.path": str(home / "included")})
        self.configure(common / "config", {f"includeIf.gitdir:{home}/.path": str(home / "conditional")})
        if admin is not None:
            self.configure(common / "config", {"extensions.worktreeConfig": "true"})
            place = home / os.fsdecode(os.path.relpath(admin, os.fsencode(home)))
            self.configure(place / "config.worktree", self.settings_of("worktree"))
        (common / "info").mkdir(exist_ok=True)
        (common / "info/attributes").write_text("*.forged filter=local\n")
        self.configure(common / "config", self._stubborn())

    def settings_of(self, scope: str) -> dict[str, str]:
        """Returns every setting that names a program, with marks of their own for each file."""
        here = self.home / "hooks" / scope
        for hook in HOOKS:
            self.marker(here / hook, f"{scope}:hook:{hook}")
        programs = {name: self.program_of(f"{scope}:{name}") for name in PROGRAMS}
        shell = {name.replace("DRIVER", scope): self.command(f"{scope}:{name}") for name in DRIVERS}
        shell |= {f"alias.{name}": f"!echo '{scope}:alias:{name}' >>'{self.home}/marks'" for name in COMMANDS}
        shell |= {f"pager.{name}": self.command(f"{scope}:pager:{name}") for name in COMMANDS}
        hooks = {f"hook.{scope}.command": programs["core.askPass"]}
        hooks |= {f"hook.{scope}.event": "reference-transaction"}
        return {"core.hooksPath": str(here)} | programs | shell | hooks | HARMFUL

    def _stubborn(self) -> dict[str, str]:
        """Returns the filters that are hard to take away."""
        return {
            "filter.zproc.process": self.program_of("local:process"),
            "filter.needed.clean": self.command("local:needed"),
            "filter.needed.required": "true",
            f"filter.{ODD}.clean": self.command("local:odd"),
        }


TOOLS = (
    *("EDITOR", "VISUAL", "PAGER", "BROWSER", "SSH_ASKPASS", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS"),
    *("GIT_EDITOR", "GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_PROXY_COMMAND", "GIT_SEQUENCE_EDITOR"),
)
SCOPES = ("user", "xdg", "local", "worktree", "included", "conditional")
PROGRAMS = (
    *("core.fsmonitor", "core.sshCommand", "core.gitProxy", "core.askPass", "core.editor", "core.pager"),
    *("core.alternateRefsCommand", "sequence.editor", "diff.external", "credential.helper", "gpg.program"),
    *("gpg.ssh.program", "interactive.diffFilter", "uploadpack.packObjectsHook", "gc.recentObjectsHook"),
    *("browser.evil.cmd", "web.browser", "sendemail.smtpServer", "remote.origin.uploadpack"),
)
DRIVERS = (
    *("filter.DRIVER.clean", "filter.DRIVER.smudge", "diff.DRIVER.textconv", "diff.DRIVER.command"),
    *("merge.DRIVER.driver", "trailer.DRIVER.command", "difftool.DRIVER.cmd", "mergetool.DRIVER.cmd"),
)
HARMFUL = {
    "commit.gpgSign": "true",
    "tag.gpgSign": "true",
    "log.showSignature": "true",
    "submodule.recurse": "true",
    "fetch.recurseSubmodules": "true",
    "status.submoduleSummary": "true",
    "diff.submodule": "diff",
    "protocol.allow": "always",
    "protocol.ext.allow": "always",
    "gc.auto": "1",
    "maintenance.auto": "true",
    "core.untrackedCache": "true",
    "help.autoCorrect": "immediate",
}
REPOSITORY = {"gc.autoDetach": "false"}


class Watch:
    """What this process starts, heard from the interpreter itself."""

    def __init__(self) -> None:
        self.argvs: list[tuple[bytes, ...]] = []
        self.others: list[str] = []
        self.on = False
        sys.addaudithook(self._hear)

    def forget(self) -> None:
        """Begins anew."""
        self.argvs.clear()
        self.others.clear()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Listens during the block."""
        self.on = True
        try:
            yield
        finally:
            self.on = False

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self.on:
            return
        if event == "subprocess.Popen":
            argv = arguments[1]
            assert isinstance(argv, list | tuple)
            self.argvs.append(tuple(os.fsencode(each) for each in argv))
        elif event in STARTING:
            self.others.append(event)


STARTING = {"os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "pty.spawn"}
