"""A lane's whole life over HTTP, with the standard library: life.py SOCKET REPOSITORY."""

import http.client
import json
import pathlib
import socket
import sys

service = http.client.HTTPConnection("laneyard")
service.sock = socket.socket(socket.AF_UNIX)
service.sock.connect(sys.argv[1])
repository = str(pathlib.Path(sys.argv[2]).resolve()).replace("%", "%25")
address, body, version = "/v1/lanes", {"repository": repository, "name": "A life in Python"}, "*"
for step in ("snapshot", "remove", "restore", "remove", "reap", "restore", "end"):
    headers = {"Content-Type": "application/json", "Prefer": "wait=60", "If-Match": version}
    service.request("POST", address, json.dumps(body), headers)
    lane = json.load(answer := service.getresponse())
    sys.stdout.write(f"{answer.status} {address}: {lane.get('state') or lane['detail']}\n")
    pathlib.Path(lane["path"], "notes.txt").write_text("half a thought\n") if step == "snapshot" else None
    address, body, version = f"/v1/lanes/{lane['id']}/{step}", {}, answer.headers["ETag"]
service.request("GET", f"/v1/events/stream?lane={lane['id']}&type=lane.*")
