"""The broker's settings by family; `barnabas_kafka.settings.broker` offers them all by name."""
