"""A server of MCP in plain Python: it starts in no time, and does wrong whatever it is told to do wrong.

``python raw_server.py '{"tools": [...], "log": "path", ...}'``. It speaks the handshake protocol over stdio, one thread
a call, and writes what it hears to its log.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

HOW = json.loads(sys.argv[1])
LOCK = threading.Lock()
CANCELLED: dict[object, threading.Event] = {}


def log(what: str) -> None:
    if "log" in HOW:
        with Path(HOW["log"]).open("a", encoding="utf-8") as file:
            file.write(what + "\n")


def send(**message: object) -> None:
    with LOCK:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def text(words: str, **more: object) -> dict[str, object]:
    return {"content": [{"type": "text", "text": words}], **more}


def tools() -> list[dict[str, object]]:
    names = HOW.get("names", ["echo", "slow", "die", "fail", "refuse", "nonsense", "who", "steps", "flood", "change"])
    schema = {"type": "object", "properties": {"words": {"type": "string"}}}
    made = [{"name": name, "description": f"Does {name}.", "inputSchema": schema} for name in names]
    if "tools_file" in HOW:
        # As they are now: a server that changes its mind.
        made = json.loads(Path(HOW["tools_file"]).read_text(encoding="utf-8"))
    listed: list[dict[str, object]] = HOW.get("tools", made)
    return listed


def call(rid: object, params: dict[str, Any]) -> None:
    name, meta = str(params["name"]), params.get("_meta") or {}
    words, token = str((params.get("arguments") or {}).get("words", "")), meta.get("progressToken")
    log(f"call {name} {words} {json.dumps({k: v for k, v in meta.items() if k.startswith('locus/')})}")
    if name == "slow":
        event = CANCELLED.setdefault(rid, threading.Event())
        send(method="notifications/progress", params={"progressToken": token, "progress": 0.1, "message": "begun"})
        if event.wait(30):
            return
    if name == "die":
        sys.stderr.write("I die now\n")
        sys.stderr.flush()
        os._exit(7)
    if name == "steps":
        for i in range(3):
            message = f"step {i} \u202e\x1b[31m"
            send(
                method="notifications/progress",
                params={"progressToken": token, "progress": i, "total": 3, "message": message},
            )
    if name == "flood":
        for i in range(1000):
            send(method="notifications/progress", params={"progressToken": token, "progress": i})
    if name == "rewrite":
        Path(HOW["tools_file"]).write_text(words, encoding="utf-8")
    if name in ("change", "rewrite"):
        send(method="notifications/tools/list_changed")
    if name == "fail":
        send(id=rid, result=text("it does not work", isError=True))
    elif name == "refuse":
        send(id=rid, error={"code": -32602, "message": "I will not"})
    elif name == "dirty":
        dirty = "a\u200b\u202eb\U000e0041 \x1b[31mc\x07\r\nd"
        resource = {"uri": "x:y", "text": dirty}
        parts = [{"type": "text", "text": dirty}, {"type": "resource", "resource": resource}]
        send(id=rid, result={"content": parts, "structuredContent": {"k\u200b": [dirty]}, "isError": words == "error"})
    elif name == "nonsense":
        send(id=rid, result={"content": "no list"})
    elif name == "who":
        send(id=rid, result=text(json.dumps({"pid": os.getpid(), "env": dict(os.environ), "cwd": str(Path.cwd())})))
    else:
        send(id=rid, result=text(words))


def page(cursor: str | None) -> dict[str, object]:
    size, all_of_them = HOW.get("page", 1000), tools()
    if HOW.get("endless"):
        return {"tools": [], "nextCursor": "again"}
    at = int(cursor or 0)
    more = {"nextCursor": str(at + size)} if at + size < len(all_of_them) else {}
    return {"tools": all_of_them[at : at + size], **more}


def main() -> None:
    log(f"start {os.getpid()}")
    if "says" in HOW:
        sys.stdout.write(HOW["says"] + "\n")
        sys.stdout.flush()
    if HOW.get("noise"):
        sys.stdout.buffer.write(b"\xff\xfe\n")
        sys.stdout.buffer.flush()
    if HOW.get("exits"):
        sys.stderr.write("no licence\n")
        sys.exit(3)
    for line in sys.stdin:
        message = json.loads(line)
        method, rid = message.get("method"), message.get("id")
        if HOW.get("silent"):
            continue
        if method == "initialize":
            info = {"name": "raw", "version": "1"}
            capabilities = {"tools": {"listChanged": True}}
            version = message["params"]["protocolVersion"]
            send(id=rid, result={"protocolVersion": version, "capabilities": capabilities, "serverInfo": info})
        elif method == "tools/list":
            send(id=rid, result=page((message.get("params") or {}).get("cursor")))
        elif method == "tools/call":
            threading.Thread(target=call, args=(rid, message["params"]), daemon=True).start()
        elif method == "notifications/cancelled":
            log("cancelled")
            CANCELLED.setdefault(message["params"]["requestId"], threading.Event()).set()
        elif rid is not None:
            send(id=rid, error={"code": -32601, "message": "unknown method"})
    log("end")
    if HOW.get("stays"):
        time.sleep(60)


main()
