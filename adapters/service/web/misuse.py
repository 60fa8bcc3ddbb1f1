"""What a request cannot be: refusals that only HTTP knows."""

from dataclasses import dataclass

from adapters.api.bodies import InvalidRequest as InvalidRequest
from domain.errors import Refusal


@dataclass(eq=False)
class NoSuchAddress(Refusal):
    """Nothing is served at this address."""

    path: str
    code = "no_such_address"
    text = "nothing is served at {path}."
    remedy = "See /openapi.json."
    status = 404


@dataclass(eq=False)
class NoSuchCommand(Refusal):
    """Neither this process nor the log knows of a command with this id."""

    command: str
    code = "no_such_command"
    text = "no command {command!r} is known."
    remedy = "A command that was refused leaves no trace; its request can be sent again."
    status = 404


@dataclass(eq=False)
class AnswerForgotten(Refusal):
    """The command is in the log, but its answer is not kept any more."""

    command: str
    code = "answer_forgotten"
    text = "the answer to command {command!r} is not kept any more."
    remedy = "Send the same request with the same Idempotency-Key again: nothing is done twice."
    status = 410


@dataclass(eq=False)
class MethodNotAllowed(Refusal):
    """The address does not take this method."""

    method: str
    path: str
    code = "method_not_allowed"
    text = "{path} does not take {method}."
    remedy = "See /openapi.json."
    status = 405


@dataclass(eq=False)
class RequestTooLarge(Refusal):
    """The body is larger than a request may be."""

    limit: int
    code = "request_too_large"
    text = "the request is larger than {limit} bytes."
    status = 413


@dataclass(eq=False)
class RequestTooSlow(Refusal):
    """The body did not arrive in the time that a request has."""

    seconds: float
    code = "request_too_slow"
    text = "the request did not arrive within {seconds} seconds."
    status = 408


@dataclass(eq=False)
class UnsupportedMedia(Refusal):
    """The body is no JSON."""

    media: str
    code = "unsupported_media"
    text = "a body of the type {media!r} cannot be read."
    remedy = "Send application/json."
    status = 415
