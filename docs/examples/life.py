"""A lane's whole life over HTTP, with the standard library: life.py SOCKET REPOSITORY."""

import http.client
import json
import socket
import sys
from pathlib import Path

service = http.client.HTTPConnection("laneyard")
service.sock = socket.socket(socket.AF_UNIX)
service.sock.connect(sys.argv[1])


def command(address: str, headers: dict[str, str], **body: str) -> dict[str, str]:
    """Returns the answer to a command, or ends with the problem."""
    service.request("POST", address, json.dumps(body), {"Content-Type": "application/json"} | headers)
    answer = service.getresponse()
    text = answer.read().decode()
    return json.loads(text) if answer.status < 400 else sys.exit(text)


lane = command("/v1/lanes", {}, repository=str(Path(sys.argv[2]).resolve()), name="A life in Python")
