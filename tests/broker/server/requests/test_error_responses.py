"""An error of a whole request: every API says it, in every version, and the connection lives."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest

from barnabas_broker.server.requests.dispatch import Dispatcher, collect_handlers
from barnabas_broker.server.requests.error_responses import error_response
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol import codec, registry
from barnabas_kafka.protocol.messages.api_versions import ApiVersionsRequest
from barnabas_kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas_kafka.protocol.messages.produce import ProduceRequest
from barnabas_kafka.protocol.registry import ApiKey
from tests.broker.server.requests.whole_requests import errors_in, whole_requests
from tests.broker.server.running import Wire, port_of, running_node, told_of_dispatchers

BUG: Final = {int(ErrorCode.UNKNOWN_SERVER_ERROR)}
KEYS: Final = [handler.api_key for handler in collect_handlers()]

SILENT: Final = {ApiKey.DESCRIBE_LOG_DIRS: 2}
"""Up to these versions the response has neither an error nor items that the request names."""


def broken(*_: object, **__: object) -> NoReturn:
    """In the place of a handler or a fast route."""
    raise ZeroDivisionError("a bug")


class Broken:
    """A broker whose handlers can be broken."""

    def __init__(self, port: int, dispatcher: Dispatcher) -> None:
        self.port = port
        self._routes: Any = dispatcher._routes

    def break_handler(self, key: int) -> None:
        """Requests of that API are served by the handler, which fails."""
        self._change(key, handle=broken, fast=None, fast_run=None, too_large=None)

    def break_fast_route(self, key: int) -> bool:
        """The same of the fast route, if there is one."""
        if self._routes[key].handler.fast is None:
            return False
        self._change(key, fast=broken, fast_run=None)
        return True

    def _change(self, key: int, **changes: Any) -> None:
        route = self._routes[key]
        self._routes[key] = replace(route, handler=replace(route.handler, **changes))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broken]:
    """One for all of these tests."""
    dispatchers: list[Dispatcher] = []
    directory: Path = tmp_path_factory.mktemp("broken")
    with told_of_dispatchers(dispatchers.append), running_node(directory) as node:
        yield Broken(port_of(node), dispatchers[0])


def check_answers(broker: Broken, key: int) -> None:
    """Each version of an API answers, on one connection, which lives."""
    with Wire(broker.port) as wire:
        for api, version, request in whole_requests():
            if api.key == key:
                response = wire.ask(request, version)
                silent = version <= SILENT.get(api.key, -1)
                assert errors_in(response, version) == (set() if silent else BUG), version
        if key != ApiKey.API_VERSIONS:
            assert wire.ask(ApiVersionsRequest(), 0).error_code == ErrorCode.NONE


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_a_bug_in_a_handler_is_answered(broker: Broken, key: ApiKey) -> None:
    """Item by item where the response has no error of its own."""
    unbroken = broker._routes[key]
    broker.break_handler(key)
    try:
        check_answers(broker, key)
    finally:
        broker._routes[key] = unbroken


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_a_bug_in_a_fast_route_is_answered(broker: Broken, key: ApiKey) -> None:
    """What it has done is not known: the handler does not try it again."""
    unbroken = broker._routes[key]
    if broker.break_fast_route(key):
        try:
            check_answers(broker, key)
        finally:
            broker._routes[key] = unbroken


def test_a_response_that_cannot_be_encoded_is_answered_by_an_error(broker: Broken) -> None:
    """A handler's slip, such as null where the version has none."""
    unbroken = broker._routes[ApiKey.LIST_GROUPS]
    no_list = registry.api(ApiKey.LIST_GROUPS).response(groups=None)
    broker._change(ApiKey.LIST_GROUPS, handle=lambda *_: no_list)
    try:
        with Wire(broker.port) as wire:
            (request,) = [it for api, at, it in whole_requests() if (api.key, at) == (16, 4)]
            assert wire.ask(request, 4).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
            assert wire.ask(ApiVersionsRequest(), 0).error_code == ErrorCode.NONE
    finally:
        broker._routes[ApiKey.LIST_GROUPS] = unbroken


def test_a_failed_produce_without_acks_has_no_response() -> None:
    """As Apache does it; and there is nothing to say of items that nobody has read."""
    error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    produce = registry.api(ApiKey.PRODUCE)
    assert error_response(produce, ProduceRequest(acks=0), 9, error) is None
    assert error_response(produce, None, 9, error) is None
    fetch = error_response(registry.api(ApiKey.FETCH), None, 12, error)
    assert fetch.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert error_response(registry.api(ApiKey.FETCH), None, 6, error) is None


def test_a_name_that_may_not_be_null_is_empty() -> None:
    """Metadata asks by id before its response may lack the name."""
    api = registry.api(ApiKey.METADATA)
    request = MetadataRequest(topics=[MetadataRequestTopic(name=None)])
    error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    for version, name in ((11, ""), (12, None)):
        response = error_response(api, request, version, error)
        assert codec.decode(api.response, codec.encode(response, version), version) == response
        assert response.topics[0].name == name
