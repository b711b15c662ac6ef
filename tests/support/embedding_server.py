"""A server of embeddings that speaks OpenAI's protocol on loopback: texts are near that share words."""

from __future__ import annotations

import json
import re
import struct
import threading
from base64 import b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from zlib import crc32

from typing_extensions import Self, override

SIZE = 1024


def vector_of(text: str) -> list[float]:
    """A text's vector."""
    vector = [0.0] * SIZE
    for word in re.findall(r"\w+", text.lower()):
        vector[crc32(word.encode()) % SIZE] += 1.0
    return vector


class EmbeddingServer:
    """Attributes: `asked`, the texts of each call; `url`, for OPENAI_API_BASE; `fails`, to answer with an error."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.fails = False
        outer = self

        class Handler(BaseHTTPRequestHandler):
            @override
            def log_message(self, *_: Any) -> None:
                return

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
                outer.asked.append(texts)
                data = [
                    {"object": "embedding", "index": number, "embedding": outer.encoded(vector, body)}
                    for number, vector in enumerate(map(vector_of, texts))
                ]
                usage = {"prompt_tokens": 1, "total_tokens": 1}
                reply = {"object": "list", "data": data, "model": body["model"], "usage": usage}
                sent = json.dumps({"error": {"message": "no such model"}} if outer.fails else reply).encode()
                self.send_response(400 if outer.fails else 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def encoded(self, vector: list[float], body: dict[str, Any]) -> Any:
        """The vector as the client asks for it."""
        if body.get("encoding_format") == "base64":
            return b64encode(struct.pack(f"<{SIZE}f", *vector)).decode()
        return vector

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
