"""What each operation is for, in the words of the document: its tag, its name, what a stranger must know."""

from __future__ import annotations

from typing import NamedTuple

TAGS = {
    "lanes": "Lines of work: a branch and the worktree in which it is done.",
    "repositories": "The repositories under our care.",
    "snapshots": "What is kept of lanes.",
    "sweeps": "Deleting what has rested long enough.",
    "events": "The log: everything that has happened, in order.",
    "commands": "What was asked for, by its Idempotency-Key.",
    "service": "The service itself.",
}
EXITS = "Only for a lane in the state `needs-review`; `GET /v1/lanes/{lane}/review` says why it is."


class Words(NamedTuple):
    """What is said of one operation."""

    tag: str
    summary: str
    description: str


OPERATIONS = {
    "listLanes": Words(
        "lanes",
        "List lanes",
        "Lists the lanes of one repository or of all, the oldest first, now or as of a position of the "
        "log. Lanes that are reaped are left out unless `all` or `state` asks for them. What is seen of "
        "each on the disk (`present`, `branch_now`, `head_now`) is unknown where its repository does not "
        "answer in time, and left out with `at` or `observe=none`.",
    ),
    "create": Words(
        "lanes",
        "Create a lane",
        "Makes a branch and a worktree for it below the repository's root. The repository comes under "
        "our care by that, if it is not yet.",
    ),
    "resolveLane": Words(
        "lanes",
        "Find a lane's id",
        "Finds the lane that is meant by a slug, an id or a unique beginning of one, or a path inside "
        "the lane.",
    ),
    "showLane": Words(
        "lanes",
        "Show a lane",
        "Shows everything about a lane, looking at its tree now. The ETag is the lane's version in the "
        "log, as `If-Match` takes it; what is seen of the tree is no part of it.",
    ),
    "reviewLane": Words(
        "lanes",
        "Show why a lane waits for a person",
        "Shows why a lane is in the state `needs-review`, and the ways out.",
    ),
    "snapshot": Words(
        "lanes",
        "Capture a lane",
        "Takes a verified snapshot of what git alone could not give back, and leaves the lane as it is. "
        "Ignored files are held only where `include_ignored` asks for them.",
    ),
    "remove": Words(
        "lanes",
        "Put a lane into quarantine",
        "Moves the lane's tree into the quarantine, whole and reversible, with a snapshot first if there "
        "is work in it. `reap` deletes it afterwards. Ignored files that are not rebuildable hold it "
        "(`unknown_ignored`) unless `include_ignored` has the snapshot hold them. `force` records a consent "
        "to lose what no snapshot can keep.",
    ),
    "restore": Words(
        "lanes",
        "Bring a lane back",
        "Moves a quarantined lane back, or makes a reaped one anew from a snapshot.",
    ),
    "reap": Words(
        "lanes",
        "Delete a quarantined lane",
        "Deletes the tree of a quarantined lane, once every entry of it is explained by a commit, a "
        "snapshot or a consent. The only step that cannot be undone; the lane can be restored from its "
        "snapshot.",
    ),
    "put_back": Words(
        "lanes",
        "Way out of a review: put it back",
        f"Restores the lane as it is. {EXITS}",
    ),
    "resnapshot": Words(
        "lanes",
        "Way out of a review: capture and reap",
        f"Captures the lane as it is, and reaps it. {EXITS}",
    ),
    "discard": Words(
        "lanes",
        "Way out of a review: discard",
        "Deletes the lane with a recorded consent that names what is not kept. For a lane in the state "
        "`needs-review`, or in quarantine where its reaping is refused (`cannot_hold`, `unknown_ignored`).",
    ),
    "listEvents": Words(
        "events",
        "Read the log",
        "Returns a page of events, the oldest first. `next`, also in `Link`, is where the log goes on; "
        "it is null at its end. A page may be empty and still have a `next`, where a filter has found "
        "nothing in what was looked through. `Laneyard-Position` is the position up to which it was.",
    ),
    "followEvents": Words(
        "events",
        "Follow the log",
        "Sends the events after a position, and then each new one, without a gap and none twice, until "
        "the client goes or the service stops. As server-sent events the id is the position and `data` "
        "an Event; as application/x-ndjson each line is an Event, as text/plain one that people read, and "
        "an empty line says only that the stream lives. A client that does not read is dropped; it goes on "
        "after the last position that it has.",
    ),
    "replayLane": Words(
        "lanes",
        "Explain a lane's log",
        "Explains the log of one lane, event by event and from the log alone: what was owed, which effect "
        "ran and what it saw, what that has made of the lane, field by field, and what was owed then. Each "
        "line of application/x-ndjson is a ReplayedEvent. Also of a lane that never came to be.",
    ),
    "dryDriveLane": Words(
        "lanes",
        "Tell what a recovery would do",
        "Tells what a recovery would do next for a lane as it is, or was at a position, what it would look "
        "at first, and whether it would be tried again. Nothing is done, locked or written.",
    ),
    "diff": Words(
        "events",
        "Compare two positions",
        "Tells which lanes differ between two positions of the log, and in what.",
    ),
    "listRepositories": Words(
        "repositories",
        "List repositories",
        "Lists the repositories under our care, by path.",
    ),
    "register": Words(
        "repositories",
        "Register a repository",
        "Takes a repository under our care, and its main checkout as its primary lane. Doing it again "
        "changes nothing; `lanes` in the answer is always as of now.",
    ),
    "listSnapshots": Words(
        "snapshots",
        "List snapshots",
        "Lists the snapshots that are kept, of one repository, of one lane, or all, the oldest first.",
    ),
    "resolveSnapshot": Words(
        "snapshots",
        "Find a snapshot's id",
        "Finds the snapshot that is meant by an id or a unique beginning of one, by a lane (its last "
        "snapshot), or by `LANE@N` (what edition N of the lane comes back from).",
    ),
    "showSnapshot": Words(
        "snapshots",
        "Show a snapshot",
        "Shows everything about a snapshot: who took it and why, what it holds by class, and what it does "
        "not hold. Its ref and its manifest are looked at; with `verify` all of it is read back. One that "
        "cannot be read is refused: 409, `snapshot_damaged`.",
    ),
    "diffSnapshot": Words(
        "snapshots",
        "Compare a snapshot with its commit",
        "Shows what `git diff` would between the commit and the snapshot, or with `staged` its index. No "
        "filter, textconv or external diff runs. A list of what git does not have of it follows. The "
        "bytes are those of the files, in no encoding.",
    ),
    "listSnapshotEntries": Words(
        "snapshots",
        "List a snapshot's entries",
        "Lists what a restore would make, in the order of the tree, a directory before what is in it. "
        "`next`, also in `Link`, is the path to go on after; it is null at the end.",
    ),
    "readSnapshotContent": Words(
        "snapshots",
        "Read files of a snapshot",
        "Answers with the raw bytes of a file, or with the target of a link, as it was captured or "
        "committed, or with `staged` as it was in the index. Of several paths they follow each other, and "
        "the entries say how long each is. Every byte has been compared with its digest.",
    ),
    "showSweep": Words(
        "sweeps",
        "Show what a sweep would do",
        "Lists the lanes that a sweep would delete now or later, and those whose deletion could not be "
        "finished.",
    ),
    "sweep": Words(
        "sweeps",
        "Sweep",
        "Reaps every lane that has rested for the retention time, and tries again what could not be "
        "deleted. What happens to one lane does not stop the others: see each lane's `problem`.",
    ),
    "showCommand": Words(
        "commands",
        "Show a command",
        "Tells how far a command is. With `Prefer: wait=N` it waits for its end. After a restart of the "
        "service only what the log has is known: no answer, and not the end of what was refused.",
    ),
    "answerCommand": Words(
        "commands",
        "Answer to a command",
        "Answers as the command's own request would: with the same document and status once it has "
        "ended, until then with 202. After a restart answers are no longer here (410): send the request "
        "again with its key.",
    ),
    "rebuild": Words(
        "service",
        "Rebuild the tables",
        "Makes every table anew from the log. Doing it twice is doing it once, so that its key is only "
        "echoed.",
    ),
    "showHealth": Words(
        "service",
        "Health",
        "Tells whether the service is ready (200) or not (503), up to where the log is, which lanes "
        "could not be driven on and why, and which repositories do not answer.",
    ),
    "metrics": Words(
        "service",
        "Metrics",
        "Tells the service's metrics in Prometheus' text format.",
    ),
}
