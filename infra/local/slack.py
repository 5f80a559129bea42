# placeholder, to be replaced
import argparse, json
from pathlib import Path
from flask import Flask, request
p = argparse.ArgumentParser(); p.add_argument("--port", type=int); p.add_argument("--home", type=Path); o, _ = p.parse_known_args()
app = Flask("slack"); M = []
@app.post("/api/chat.postMessage")
def post():
    b = request.get_json(silent=True) or request.form.to_dict(); M.append(b); return {"ok": True, "channel": b.get("channel"), "ts": f"{len(M)}.0", "message": b}
@app.get("/messages")
def messages(): return M
@app.get("/")
def root(): return "ok"
app.run("127.0.0.1", o.port)
