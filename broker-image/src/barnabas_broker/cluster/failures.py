"""What fails with one of several things that are handled together, so that the others go on.

A request names many partitions or groups. What one of them meets is its own: Kafka answers it with
an error of that one, UNKNOWN_SERVER_ERROR where nobody foresaw it (`ReplicaManager`,
`Errors.forException`), and serves the rest.
"""

import logging

from barnabas_kafka.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)


def refusal(error: Exception, doing: str, subject: object) -> KafkaError:
    """What is told of one of several. What nobody foresaw is logged, with its traceback."""
    if isinstance(error, KafkaError):
        return error
    log.error("%s of %s failed", doing, subject, exc_info=error)
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
