"""What our broker answers when it fails to serve a request is what Apache's would."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from barnabas_broker.server.requests.error_responses import error_response
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.schema import Struct
from tests.broker.server.requests.whole_requests import whole_requests
from tests.oracle.apache import run_tool

pytestmark = pytest.mark.jvm

PROGRAM: Final = str(Path(__file__).parent / "java" / "ErrorResponses.java")


def without_messages(message: Any) -> Any:
    """Without texts: Apache says nothing of unknown errors."""
    for name in type(message).__fields__:
        value = getattr(message, name)
        if name == "error_message":
            setattr(message, name, None)
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, Struct) and isinstance(value, list):
                without_messages(each)
    return message


def test_error_responses_are_apaches() -> None:
    """Of every API and version of that release, for a request with an item in each list."""
    cases = list(whole_requests())
    asked = "".join(
        f"{int(api.key)} {version} x{codec.encode(request, version).hex()}\n"
        for api, version, request in cases
    )
    done = run_tool(PROGRAM, input=asked)
    assert done.returncode == 0, done.stderr
    different = []
    error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    for (api, version, request), printed in zip(cases, done.stdout.split(), strict=True):
        if printed == "later":
            continue
        reported = bytes.fromhex(printed.removeprefix("x"))
        theirs = without_messages(codec.decode(api.response, reported, version))
        made = codec.encode(error_response(api, request, version, error), version)
        ours = without_messages(codec.decode(api.response, made, version))
        if ours != theirs:
            different.append(f"{api.name} {version}: ours {ours}, theirs {theirs}")
    assert not different, "\n".join(different)
