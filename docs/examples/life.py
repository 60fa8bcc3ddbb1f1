"""A lane's whole life over HTTP, with the standard library: life.py SOCKET REPOSITORY."""

import http.client
import json
import socket
import sys
from pathlib import Path

service = http.client.HTTPConnection("laneyard")
service.sock = socket.socket(socket.AF_UNIX)
service.sock.connect(sys.argv[1])


def _post(address: str, **body: str) -> dict[str, str]:
    service.request("POST", address, json.dumps(body), {"Content-Type": "application/json"})
    return json.load(answer) if (answer := service.getresponse()).status < 202 else sys.exit(answer.read())


lane = _post("/v1/lanes", repository=str(Path(sys.argv[2]).resolve()).replace("%", "%25"), name="A life")
Path(lane["path"], "notes.txt").write_text("half a thought\n")
for step in ("snapshot", "remove", "restore", "remove", "reap", "restore"):
    lane = _post(f"/v1/lanes/{lane['id']}/{step}")
service.request("GET", f"/v1/events/stream?lane={lane['id']}", None, {"Accept": "application/x-ndjson"})
for event in map(json.loads, service.getresponse()):
    sys.stdout.write(f"{event['position']} {event['type']}\n")
    if event["position"] == lane["position"]:
        break
