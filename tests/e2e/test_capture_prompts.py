"""Passwords and second factors, asked by a real ssh of a test server, also on the way through."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from e2e.capture_lab import Lab, free_port, make_key, make_lab

from nsys_tui.capture.failures import AuthenticationError
from nsys_tui.capture.launchers import Target
from nsys_tui.capture.supervisor import request
from nsys_tui.capture.transport.askpass import Prompt, PromptKind, classify
from nsys_tui.capture.transport.ssh import SshConnector
from nsys_tui.config import TargetConfig

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

asyncssh = pytest.importorskip("asyncssh", reason="NOT TESTED: asyncssh is not installed")
pytestmark = pytest.mark.e2e


class PasswordServer(asyncssh.SSHServer):  # type: ignore[misc, name-defined]
    """Lets in with the password ``hunter2``."""

    def begin_auth(self, _: str) -> bool:
        return True

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, _: str, password: str) -> bool:
        return password == "hunter2"


class TwoFactorServer(asyncssh.SSHServer):  # type: ignore[misc, name-defined]
    """Asks for a password and a code in one challenge."""

    def begin_auth(self, _: str) -> bool:
        return True

    def kbdint_auth_supported(self) -> bool:
        return True

    def get_kbdint_challenge(self, *_: Any) -> Any:
        return "Two factors", "", "", [("Password: ", False), ("Verification code: ", True)]

    def validate_kbdint_response(self, _: str, answers: list[str]) -> bool:
        return answers == ["hunter2", "424242"]


served: set[Any] = set()


async def shell(process: Any) -> None:
    """Runs ``exec sh -s`` as sshd would."""
    served.add(asyncio.current_task())
    child = await asyncio.create_subprocess_exec(
        "sh", "-c", process.command or "exit 1", stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    await process.redirect(child.stdin, child.stdout, child.stderr)
    process.exit(await child.wait())
    await process.wait_closed()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with make_lab(tmp_path_factory.mktemp("prompts") / "ssh") as lab:
        yield lab


@pytest.fixture(params=["password", "two factors"])
async def server(request: Any, lab: Lab, tmp_path: Path) -> AsyncIterator[tuple[str, int]]:
    kind = PasswordServer if request.param == "password" else TwoFactorServer
    port = free_port()
    make_key(tmp_path / "host")
    listener = await asyncssh.create_server(
        kind, "127.0.0.1", port, server_host_keys=[str(tmp_path / "host")], process_factory=shell,
        encoding=None,
    )  # fmt: skip
    yield request.param, port
    listener.close()
    await listener.wait_closed()
    async with asyncio.timeout(20):  # what is left undone is warned of in a later test
        await asyncio.gather(*served, return_exceptions=True)
    served.clear()


def connector(lab: Lab, tmp_path: Path, port: int, answers: dict[str, str], more: str = "") -> Any:
    """A connector to the test server, and the kinds of questions that came."""
    config = tmp_path / "config"
    config.write_text(
        f"Host asking\n  HostName 127.0.0.1\n  Port {port}\n  PubkeyAuthentication no\n"
        f"  UserKnownHostsFile {tmp_path}/known\n  GlobalKnownHostsFile /dev/null\n"
        f"  NumberOfPasswordPrompts 1\n{more}" + lab.config.read_text()
    )
    asked: list[Prompt] = []

    async def answer(prompt: Prompt) -> str | None:
        asked.append(prompt)
        return answers.get(prompt.kind.value)

    target = Target("t", TargetConfig(host="asking"))
    return SshConnector(target, ["ssh", "-F", str(config)], answer), asked


RIGHT = {"host key": "yes", "password": "hunter2", "verification code": "424242"}


async def test_every_question_comes_once_and_the_second_command_asks_nothing(
    lab: Lab, tmp_path: Path, server: tuple[str, int]
) -> None:
    kind, port = server
    way, asked = connector(lab, tmp_path, port, RIGHT)
    channel = await way.connect()
    expected = ["host key", "password", *(["verification code"] if kind == "two factors" else [])]
    assert [prompt.kind.value for prompt in asked] == expected
    assert await channel.ask(request("hello"), 10) == []
    assert len(asked) == len(expected)
    await channel.close()
    await way.close()


@pytest.mark.parametrize("wrong", [{"password": "nope"}, {"password": ""}])
async def test_a_wrong_or_cancelled_answer_is_a_refusal(
    lab: Lab, tmp_path: Path, server: tuple[str, int], wrong: dict[str, str]
) -> None:
    way, asked = connector(lab, tmp_path, server[1], {**RIGHT, **wrong})
    with pytest.raises(AuthenticationError, match="permission denied"):
        await way.connect()
    assert asked
    await way.close()


async def test_without_anybody_to_ask_the_error_says_what_was_due(
    lab: Lab, tmp_path: Path, server: tuple[str, int]
) -> None:
    way, _ = connector(lab, tmp_path, server[1], RIGHT)
    await (await way.connect()).close()
    await way.close()
    silent = SshConnector(way._target, way._ssh, None)
    with pytest.raises(AuthenticationError) as caught:
        await silent.connect()
    assert "wants a password or code" in caught.value.hint
    await silent.close()


async def test_questions_of_the_jump_host_and_of_the_target_come_in_order(
    lab: Lab, tmp_path: Path, server: tuple[str, int]
) -> None:
    kind, port = server
    make_key(tmp_path / "locked", "open sesame")
    with (lab.folder / "authorized_keys").open("a") as file:
        file.write((tmp_path / "locked.pub").read_text())
    hop = (
        f"  ProxyJump hop\nHost hop\n  HostName 127.0.0.1\n  Port {lab.bastion.port}\n"
        f"  IdentityFile {tmp_path}/locked\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {tmp_path}/known\n  GlobalKnownHostsFile /dev/null\n"
    )
    way, asked = connector(lab, tmp_path, port, {**RIGHT, "passphrase": "open sesame"}, hop)
    await (await way.connect()).close()
    expected = ["host key", "passphrase", "host key", "password"]
    if kind == "two factors":
        expected.append("verification code")
    assert [prompt.kind.value for prompt in asked] == expected
    await way.close()


async def test_nobody_without_the_token_gets_a_question_through(tmp_path: Path) -> None:
    import asyncio
    import json

    from nsys_tui.capture.transport.askpass import AskpassServer

    async def answer(_: Prompt) -> str:
        raise AssertionError("asked")

    folder = tmp_path
    folder.chmod(0o700)
    askpass = AskpassServer(folder, "t", answer)
    env = await askpass.start()
    reader, writer = await asyncio.open_unix_connection(env["NSYS_TUI_ASKPASS_SOCKET"])
    writer.write(json.dumps({"token": "guess", "prompt": "Password:"}).encode() + b"\n")
    assert json.loads(await reader.readline()) == {}
    writer.close()
    await askpass.close()


@pytest.mark.parametrize(
    ("text", "hint", "kind"),
    [
        ("Are you sure you want to continue connecting (yes/no/[fingerprint])? ", "", "host key"),
        ("u@h's password: ", "", "password"),
        ("Enter passphrase for key '/home/u/password_key': ", "", "passphrase"),
        ("(u@h) Verification code: ", "", "verification code"),
        ("(u@h) Duo two-factor login\nPasscode or option (1-2): ", "", "question"),
        ("Confirm user presence for key ED25519-SK", "none", "notice"),
        ("Allow use of key?", "confirm", "confirmation"),
        ("Antwort: ", "", "question"),
    ],
)
def test_kinds_by_text(text: str, hint: str, kind: str) -> None:
    found = classify(text, hint)
    assert found.value == kind
    assert Prompt(found, text, "t").masked == (kind not in ("host key", "notice", "confirmation"))
    assert PromptKind(kind) is found
