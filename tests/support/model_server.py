"""A model on loopback for real agents to talk to: it asks for the tools that it was told to, one after the other.

It speaks Anthropic's messages and OpenAI's chat completions, streamed or not, as far as agents look at them.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Call = tuple[str, dict[str, Any]]
"""A tool and what it is called with."""


class Model(ThreadingHTTPServer):
    """``script`` has the calls of one turn; whoever has results of all of them is told that it is done."""

    daemon_threads = True

    def __init__(self, script: Sequence[Call]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = list(script)
        self.asked: list[list[str]] = []
        """The names of the tools that each request offered."""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def next_call(self, results: int, offered: list[str]) -> Call | None:
        self.asked.append(offered)
        if not offered or results >= len(self.script):
            return None
        name, _ = self.script[results]
        return self.script[results] if name in offered else None


@contextmanager
def model(script: Sequence[Call]) -> Iterator[Model]:
    server = Model(script)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: Model
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self._answer({})

    def do_GET(self) -> None:
        self._answer({"object": "list", "data": [{"id": "mock", "object": "model"}]})

    def do_POST(self) -> None:
        asked = json.loads(self._body() or b"{}")
        if self.path.partition("?")[0].endswith("/count_tokens"):
            self._answer({"input_tokens": 1})
        elif "/messages" in self.path:
            self._as_anthropic(asked)
        elif self.path.endswith("/chat/completions"):
            self._as_openai(asked)
        else:
            self._answer({})

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        body = b""
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _answer(self, document: dict[str, Any]) -> None:
        data = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _stream(self, events: list[tuple[str, Any]]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for name, data in events:
            head = f"event: {name}\n" if name else ""
            self.wfile.write(f"{head}data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode())
        self.close_connection = True

    def _as_anthropic(self, asked: dict[str, Any]) -> None:
        results = json.dumps(asked.get("messages", [])).count('"tool_result"')
        call = self.server.next_call(results, [tool.get("name", "") for tool in asked.get("tools") or []])
        if call is None:
            block: dict[str, Any] = {"type": "text", "text": "done"}
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": "done"}
        else:
            block = {"type": "tool_use", "id": f"toolu_{results}", "name": call[0], "input": call[1]}
            empty, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(call[1])}
        reason = "end_turn" if call is None else "tool_use"
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": asked.get("model", "mock")}
        if not asked.get("stream"):
            self._answer({**message, "content": [block], "stop_reason": reason, "stop_sequence": None, "usage": usage})
            return
        start = {**message, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
        stop = {"stop_reason": reason, "stop_sequence": None}
        events: list[tuple[str, dict[str, Any]]] = [
            ("message_start", {"message": start}),
            ("content_block_start", {"index": 0, "content_block": empty}),
            ("content_block_delta", {"index": 0, "delta": delta}),
            ("content_block_stop", {"index": 0}),
            ("message_delta", {"delta": stop, "usage": usage}),
            ("message_stop", {}),
        ]
        self._stream([(name, {"type": name, **data}) for name, data in events])

    def _as_openai(self, asked: dict[str, Any]) -> None:
        results = sum(message.get("role") == "tool" for message in asked.get("messages") or [])
        offered = [(tool.get("function") or {}).get("name", "") for tool in asked.get("tools") or []]
        call = self.server.next_call(results, offered)
        said: dict[str, Any] = {"role": "assistant", "content": "done"}
        if call is not None:
            function = {"name": call[0], "arguments": json.dumps(call[1])}
            said = {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"index": 0, "id": f"call_{results}", "type": "function", "function": function}],
            }
        reason = "stop" if call is None else "tool_calls"
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        head = {"id": "chat_1", "created": 1, "model": asked.get("model", "mock")}
        if not asked.get("stream"):
            choice = {"index": 0, "message": said, "finish_reason": reason}
            self._answer({**head, "object": "chat.completion", "choices": [choice], "usage": usage})
            return
        chunk = {**head, "object": "chat.completion.chunk"}
        pieces = [
            {**chunk, "choices": [{"index": 0, "delta": said, "finish_reason": None}]},
            {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage},
        ]
        self._stream([("", piece) for piece in pieces] + [("", "[DONE]")])
