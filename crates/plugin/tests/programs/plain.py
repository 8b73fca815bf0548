#!/usr/bin/env python3
"""A plug-in for tests whose type has only the methods that every type needs."""
import json
import sys
import time

DEFINITION = {"type": "Test::Plain", "summary": "A plain thing.", "methods": ["create", "delete"]}

for line in sys.stdin:
    request = json.loads(line)
    if "hangs" in line:
        time.sleep(3600)
    results = {
        "describe": {"protocol": 1, "name": "plain", "resource_types": [DEFINITION]},
        "create": {"id": "one", "wait": {}} if "waits" in line else {} if "nameless" in line else {"id": "one"},
        "delete": {"replace": True} if "odd" in line else None,
    }
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": results[request["method"]]}), flush=True)
