"""What an editor does with an agent that it talks to by the Agent Client Protocol: one session, one prompt.

It allows whatever the agent asks for.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Editor:
    """The agent runs in ``cwd``; which directory a session is about is said to it."""

    def __init__(self, command: list[str], *, cwd: Path, env: Mapping[str, str]) -> None:
        self._agent = subprocess.Popen(
            command, cwd=cwd, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._asked = 0

    def __enter__(self) -> Editor:
        self.ask("initialize", protocolVersion=1, clientCapabilities={})
        return self

    def __exit__(self, *_: object) -> None:
        assert self._agent.stdin is not None
        self._agent.stdin.close()
        try:
            self._agent.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._agent.kill()
            self._agent.wait()
        assert self._agent.stdout is not None
        self._agent.stdout.close()

    def turn(self, directory: Path, text: str) -> dict[str, Any]:
        session = self.ask("session/new", cwd=str(directory), mcpServers=[])["sessionId"]
        return self.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The answer to a request; what the agent asks meanwhile is answered."""
        self._asked += 1
        self._write({"id": self._asked, "method": method, "params": params})
        assert self._agent.stdout is not None
        for line in self._agent.stdout:
            told = json.loads(line)
            if told.get("method") == "session/request_permission":
                self._allow(told)
            elif "method" not in told and told.get("id") == self._asked:
                assert "error" not in told, told
                result: dict[str, Any] = told["result"]
                return result
        raise AssertionError(f"the agent ended before it answered {method}")

    def _allow(self, request: dict[str, Any]) -> None:
        allowing = [one for one in request["params"]["options"] if one["kind"] == "allow_once"]
        outcome = {"outcome": "selected", "optionId": allowing[0]["optionId"]}
        self._write({"id": request["id"], "result": {"outcome": outcome}})

    def _write(self, message: dict[str, Any]) -> None:
        assert self._agent.stdin is not None
        self._agent.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._agent.stdin.flush()
