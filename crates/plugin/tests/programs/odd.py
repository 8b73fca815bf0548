#!/usr/bin/env python3
"""A plug-in for tests: a thing that does what its property `does` says, instead of an answer or after one.

The things are files in a folder, which is its first argument: the name is the ID, the content the mark. A line of `calls` in
the folder is a call: its method and the process. A word with a colon concerns one method: `create:hang`.
"""
import json
import os
import pathlib
import sys
import threading
import time

FOLDER = pathlib.Path(sys.argv[1])
WRITING = threading.Lock()
METHODS = ["create", "poll", "find", "update", "delete", "attributes", "check", "validate", "signal",
           "snapshot", "delete_snapshot"]
DEFINITION = {
    "type": "Test::Odd",
    "summary": "A thing that does what it is told.",
    "methods": METHODS,
    "properties": {
        "does": {"type": "string", "update": True, "default": ""},
        "zone": {"type": "string", "is": "test.zone"},
    },
    "attributes": {"mark": "string", "user": "string"},
}


def send(message):
    with WRITING:
        print(json.dumps(message), flush=True)


def make(params):
    number = len(list(FOLDER.glob("thing-*"))) + 1
    name = f"thing-{number}-{params['resource']['name']}"
    (FOLDER / name).write_text(params["mark"])
    return name


def odd(word, request):
    """Does something else than to answer; returns whether the answer follows."""
    if word == "hang":
        time.sleep(3600)
    elif word == "die":
        print("I have had enough", file=sys.stderr, flush=True)
        os._exit(3)
    elif word == "garbage":
        with WRITING:
            print("Hello world", flush=True)
        time.sleep(3600)
    elif word == "flood":
        with WRITING:
            for _ in range(100):
                sys.stdout.write("x" * 1_000_000)
            sys.stdout.flush()
        time.sleep(3600)
    elif word == "wrong_id":
        send({"jsonrpc": "2.0", "id": request["id"] + 1000, "result": None})
        time.sleep(3600)
    elif word == "wrong_shape":
        send({"jsonrpc": "2.0", "id": request["id"], "result": {"size": 5}})
    elif word == "no_result":
        send({"jsonrpc": "2.0", "id": request["id"]})
    elif word == "close":
        os.close(1)
        time.sleep(3600)
    elif word == "error":
        message = "no room for " + request["params"]["access"]["token"]
        send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": 1, "message": message, "data": {"kind": "refused"}}})
    elif word == "crash":
        send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32603, "message": "KeyError: 'size'"}})
    elif word == "slow":
        time.sleep(0.3)
        return True
    elif word == "once":
        # Hangs the first time only.
        marker = FOLDER / ("once-" + request["params"]["resource"]["name"])
        if marker.exists():
            return True
        marker.touch()
        time.sleep(3600)
    elif word in ("expired", "revoked"):
        if word == "revoked" or "second" not in request["params"]["access"]["token"]:
            error = {"code": 1, "message": "bad token", "data": {"kind": "unauthorized"}}
            send({"jsonrpc": "2.0", "id": request["id"], "error": error})
            return False
        return True
    elif word == "leak":
        token = request["params"]["access"]["token"]
        (FOLDER / "token").write_text(token)
        print("my token is", token, file=sys.stderr, flush=True)
        return True
    else:
        return True
    return False


def answer(request):
    params, method = request["params"], request["method"]
    if method == "describe":
        return {"protocol": 1, "name": "odd", "resource_types": [DEFINITION], "constraints": ["test.zone"]}
    with (FOLDER / "calls").open("a") as calls:
        calls.write(f"{method} {os.getpid()}\n")
    if method == "validate_constraint":
        return {"valid": params["value"] != "moon", "why": "there is no air"}
    resource = params["resource"]
    word = resource["properties"].get("does") or ""
    made = None
    if method == "create" and "made" in word:
        made = make(params)
    for part in word.replace("made", "").split():
        at, _, what = part.rpartition(":")
        if at in ("", method) and (at or method == "create") and not odd(what, request):
            return None
    if method == "create":
        return {"id": made or make(params), "wait": {"state": {"polls": 1}, "after": 0.05}, "data": {"secret": "s"}}
    if method == "poll":
        left = params["state"]["polls"]
        return {"wait": {"state": {"polls": left - 1}, "after": 0.05}} if left else {}
    if method == "find":
        made = [path.name for path in FOLDER.glob("thing-*") if path.read_text() == params["mark"]]
        return {"found": True, "id": made[0]} if made else {"found": False}
    if method == "delete":
        (FOLDER / resource["id"]).unlink(missing_ok=True)
        return {}
    if method == "attributes":
        return {"mark": (FOLDER / resource["id"]).read_text(), "user": params["access"]["user_id"]}
    if method == "signal":
        count = resource["data"].get("signals", 0) + 1
        return {"data": {"signals": count}, "metadata": {"signal": params["signal"]}, "event": f"number {count}"}
    if method == "snapshot":
        copy = "copy-" + params["mark"]
        (FOLDER / copy).write_text(resource["id"])
        return {"data": {"copy": copy}, "restored": {"does": "restored"}}
    if method == "delete_snapshot":
        copy = FOLDER / resource["data"].get("copy", "none")
        if not copy.exists():
            return {}
        copy.unlink()
        return {"after": 0.05}
    if method == "validate" and word == "refused":
        raise ValueError("this is not allowed")
    return {}


def work(request):
    try:
        result = answer(request)
    except ValueError as error:
        data = {"kind": "refused"}
        return send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": 1, "message": str(error), "data": data}})
    if result is not None:
        send({"jsonrpc": "2.0", "id": request["id"], "result": result})


for line in sys.stdin:
    threading.Thread(target=work, args=[json.loads(line)], daemon=True).start()
