#!/bin/sh
# A lane's whole life over HTTP: life.sh SOCKET REPOSITORY. Needs curl, and a service at the socket.
set -eu
socket=$1
# As it stands in a request: absolute, with %25 for the percent sign, and quoted for JSON.
repository=$(cd "$2" && pwd -P | sed 's/%/%25/g; s/["\\]/\\&/g')

ask() { # ADDRESS [CURL'S OPTIONS]: answers in the words of the command line; fails where the service refuses
    address=$1 && shift
    curl --silent --show-error --fail-with-body --unix-socket "$socket" \
        -H 'Accept: text/plain' "$@" "http://laneyard$address"
}

command() { # ADDRESS BODY [CURL'S OPTIONS]: waits up to a minute for the end
    address=$1 body=$2 && shift 2
    ask "$address" --data "$body" -H 'Content-Type: application/json' -H 'Prefer: wait=60' "$@"
}

path=$(command /v1/lanes "{\"repository\": \"$repository\", \"name\": \"A life in sh\"}")
lane=$(ask /v1/resolve --get --data-urlencode "lane=$path")
echo "lane $lane at $path"

# Its milestones, from the first one on, as they happen.
events=$(mktemp -u) && mkfifo "$events" && exec 3<>"$events" && rm "$events"
ask "/v1/events/stream?lane=$lane&type=lane.*" -H 'Accept: text/event-stream' --no-buffer >&3 &
follower=$!
trap 'kill $follower' EXIT

echo 'half a thought' >"$path/notes.txt"
command "/v1/lanes/$lane/snapshot" '{}'

# Only if nobody has changed the lane since we looked; and once, although it is sent twice.
version=$(ask "/v1/lanes/$lane" --output /dev/null --dump-header - | tr -d '\r' | sed -n 's/^[Ee][Tt]ag: //p')
key=remove-$lane-1
command "/v1/lanes/$lane/remove" '{}' -H "Idempotency-Key: $key" -H "If-Match: $version"
command "/v1/lanes/$lane/remove" '{}' -H "Idempotency-Key: $key" -H "If-Match: $version"

command "/v1/lanes/$lane/restore" '{}'
command "/v1/lanes/$lane/remove" '{}'
command "/v1/lanes/$lane/reap" '{}'
command "/v1/lanes/$lane/restore" '{}'
cat "$path/notes.txt"

restored=0
while [ "$restored" -lt 2 ] && read -r field value <&3; do
    if [ "$field" = event: ]; then echo "$value"; fi
    case $field$value in event:lane.restored@*) restored=$((restored + 1)) ;; esac
done
