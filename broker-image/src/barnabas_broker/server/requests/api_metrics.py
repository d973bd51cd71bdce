"""How many requests of each kind came, how they ended, and how long each took."""

from barnabas_broker.server.requests.histogram import Histogram
from barnabas_kafka.errors import ErrorCode


class ApiMetrics:
    """The requests of one API: their times, and those that failed as a whole, by error."""

    __slots__ = ("errors", "times", "versions")

    def __init__(self) -> None:
        self.times = Histogram()
        self.versions: dict[int, int] = {}
        self.errors: dict[ErrorCode, int] = {}

    def served(self, version: int, nanoseconds: int, *, requests: int = 1) -> None:
        """Count requests that were answered, or needed no answer, after that time each."""
        self.versions[version] = self.versions.get(version, 0) + requests
        self.times.observe(nanoseconds // 1000, requests)

    def failed(self, code: ErrorCode) -> None:
        """Count a request, or a part of one, that was answered with an error."""
        self.errors[code] = self.errors.get(code, 0) + 1


class RequestMetrics:
    """All requests of a broker, by the name of their API."""

    __slots__ = ("by_api",)

    def __init__(self) -> None:
        self.by_api: dict[str, ApiMetrics] = {}

    def of(self, api: str) -> ApiMetrics:
        """The metrics of the API of that name; keep them rather than ask for each request."""
        return self.by_api.setdefault(api, ApiMetrics())
