"""Effects in words: what would be done to the world, and what a performer looks at before it acts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.api.words import count
from domain import effects as e
from domain.naming import short_branch
from domain.paths import display

if TYPE_CHECKING:
    from domain.evidence import Place
    from domain.states import Basis


def words(effect: e.Effect) -> str:
    """Returns what an effect does, with its arguments."""
    match effect:
        case e.Checkout(branch=None):
            return f"make a worktree of {_commit(effect.commit)} at {display(effect.path)}, HEAD detached"
        case e.Checkout():
            branch = short_branch(effect.branch)
            return f"make a worktree of {_commit(effect.commit)} at {display(effect.path)} on branch {branch}"
        case e.Lock():
            return f"lock the registration {display(effect.admin)} with {effect.reason!r}"
        case e.Unlock():
            return f"take the lock {effect.reason!r} off the registration {display(effect.admin)}"
        case e.Move():
            return f"move the tree from {display(effect.place.path)} to {display(effect.target)}"
        case e.FreeBranch():
            branch = short_branch(effect.branch)
            if branch is None:
                return f"see that HEAD of {display(effect.admin)} is detached"
            return f"detach HEAD of {display(effect.admin)}, so that branch {branch} is free"
        case e.Rejoin(branch=None):
            return f"leave HEAD of {display(effect.admin)} detached, as it was"
        case e.Rejoin():
            return f"put HEAD of {display(effect.admin)} on branch {short_branch(effect.branch)}"
        case e.DropBranch():
            return f"delete branch {short_branch(effect.branch)}, if it is at {_commit(effect.at)}"
        case _:
            return _of_a_tree(effect)


def _of_a_tree(effect: e.Effect) -> str:
    match effect:
        case e.Capture():
            held = f", with {count(len(effect.apart), 'ignored path')}" if effect.apart else ""
            left_out = f", without {count(len(effect.omit), 'path')}" if effect.omit else ""
            return f"take snapshot {effect.snapshot} of {_tree(effect.place)}{held}{left_out}"
        case e.Apply():
            return f"make {_tree(effect.place)} what snapshot {effect.snapshot.id} holds"
        case e.Explain():
            return f"explain every entry of {_tree(effect.place)} by {_basis(effect.basis)}; deletes nothing"
        case e.Destroy():
            by = f"explained as {effect.digest[:12]}" if effect.digest else "of which nothing was there"
            return f"delete {_tree(effect.place)}, {by}"
        case e.Deregister():
            return f"take the registration {display(effect.place.admin)} out of git"
        case _:
            raise AssertionError(f"no words for {type(effect).__name__}")


def first_look(effect: e.Effect) -> str:
    """Returns what its performer would look at before it acts: what makes doing it twice doing it once."""
    match effect:
        case e.Checkout():
            return f"whether a registration of {display(effect.path)} has the lock {effect.reason!r} already"
        case e.Lock():
            return "whether the registration is locked already, and whether by us"
        case e.Unlock():
            return "whether the registration is there, and whether its lock is ours"
        case e.Move():
            tree = f"the directory with inode {effect.place.identity.inode}"
            return f"whether {tree} is at {display(effect.target)} already, or where it was"
        case e.FreeBranch():
            return "whether HEAD is detached already"
        case e.Rejoin(branch=None):
            return "nothing: there is nothing to do"
        case e.Rejoin():
            return "where HEAD and the branch are, and whether another checkout uses the branch"
        case e.DropBranch():
            return "whether the branch is gone already, where it is, and whether a checkout uses it"
        case e.Capture():
            return "whether the snapshot was finished already; then it is only read back and compared"
        case e.Apply():
            return "whether the snapshot can be read back whole, then what of it is in place already"
        case e.Explain():
            return f"whether the directory with inode {effect.place.identity.inode} is there, then all in it"
        case e.Destroy():
            return "whether the tree is there; where it is not, whether it is proved that we have deleted it"
        case e.Deregister():
            return "whether git was used there since, and whether the registration is still that of the tree"
        case _:
            raise AssertionError(f"no words for {type(effect).__name__}")


def _tree(place: Place) -> str:
    return f"the tree at {display(place.path)}"


def _basis(basis: Basis) -> str:
    found = [_commit(basis.commit)] if basis.commit else []
    found += [f"snapshot {basis.snapshot.id}"] if basis.snapshot else []
    found += [f"a consent to {count(len(basis.consent.named), 'path')}"] if basis.consent else []
    found += ["beginnings of its files"] if basis.partial else []
    return ", ".join(found) or "nothing"


def _commit(oid: str) -> str:
    return f"commit {oid[:12]}"
