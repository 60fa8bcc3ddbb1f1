#!/bin/sh
# A lane's whole life over HTTP, with curl 7.76 or newer: life.sh SOCKET REPOSITORY.
set -eu
socket=$1
# Paths in requests are absolute, and have %25 for the percent sign; in JSON quotes need a backslash.
packed() { printf %s "$1" | sed 's/%/%25/g'; }
repository=$(packed "$(cd "$2" && pwd -P)" | sed 's/["\\]/\\&/g')
words='Accept: text/plain'

ask() { # ADDRESS [OPTIONS OF CURL]: prints the answer, and fails where there is a problem
    address=$1 && shift
    curl --silent --show-error --fail-with-body --unix-socket "$socket" "$@" "http://laneyard$address"
}

post() { # ADDRESS BODY [OPTIONS OF CURL]: one command; waits up to a minute for its end
    address=$1 body=$2 && shift 2
    ask "$address" -H "$words" -H 'Content-Type: application/json' -H 'Prefer: wait=60' --data "$body" "$@"
}

path=$(post /v1/lanes "{\"repository\": \"$repository\", \"name\": \"A life in sh\"}")
lane=$(ask /v1/resolve -H "$words" --get --data-urlencode "lane=$(packed "$path")")
echo "lane $lane at $path"

# Its milestones, from the first one on, go to a pipe as they happen.
pipe=$(mktemp -u) && mkfifo "$pipe"
curl -sSN --unix-socket "$socket" "http://laneyard/v1/events/stream?lane=$lane&type=lane.*" >"$pipe" &
follower=$!
trap 'kill $follower' EXIT
exec 3<"$pipe" && rm "$pipe"

echo 'half a thought' >"$path/notes.txt"
post "/v1/lanes/$lane/snapshot" '{}'

# Only if nobody has changed the lane since we looked; and once, although it is sent twice.
version=$(ask "/v1/lanes/$lane" --output /dev/null --dump-header - | tr -d '\r' | sed -n 's/^etag: //p')
for attempt in first second; do
    echo "the $attempt time:"
    post "/v1/lanes/$lane/remove" '{}' -H "Idempotency-Key: remove-$lane" -H "If-Match: $version"
done

post "/v1/lanes/$lane/restore" '{}'
post "/v1/lanes/$lane/remove" '{}'
post "/v1/lanes/$lane/reap" '{}'
post "/v1/lanes/$lane/restore" '{}'

restored=0
while [ $restored -lt 2 ] && read -r field value <&3; do
    if [ "$field" = event: ]; then echo "$value"; fi
    case $field$value in event:lane.restored@*) restored=$((restored + 1)) ;; esac
done
cat "$path/notes.txt"
