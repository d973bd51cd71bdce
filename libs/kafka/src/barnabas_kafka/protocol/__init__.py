"""The Kafka wire protocol: schemas, codecs, frames."""
