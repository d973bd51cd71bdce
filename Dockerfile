# The images of Barnabas: targets broker, zookeeper, operator and pipeline. `make images` builds all.
#
# Everything is at home in Debian 13 and its Python 3.13. Compilers and downloads stay in the stages
# called *-build; what runs has no more than it needs, runs as user 1001, and works when its root file
# system is read-only. Programs are process 1 themselves, or what stands there hands on SIGTERM: each handles it.
# Nothing here needs BuildKit.

# A release names it by digest (docs/contributing/releasing.md). By its tag alone whatever a machine has is taken, as
# one without a registry has it.
ARG BASE=debian:trixie-slim

FROM ${BASE} AS python
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends python3 \
 && rm -rf /var/lib/apt/lists/* /var/log/apt /var/log/dpkg.log \
 && groupadd --gid 1001 barnabas \
 && useradd --uid 1001 --gid 1001 --home-dir /nonexistent --no-create-home --shell /usr/sbin/nologin barnabas
ENV PATH=/opt/barnabas/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1

# uv installs exactly what the lock file says, as wheels that were compiled to bytecode.
FROM python AS build
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends gcc libc6-dev python3-dev python3-venv \
 && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /opt/uv && /opt/uv/bin/pip install --quiet --disable-pip-version-check uv==0.13.8
ENV UV_COMPILE_BYTECODE=1 \
    UV_LINK_MODE=copy \
    UV_NO_PROGRESS=1 \
    UV_PROJECT_ENVIRONMENT=/opt/barnabas \
    UV_PYTHON=/usr/bin/python3 \
    UV_PYTHON_DOWNLOADS=never \
    UV_SYNC="/opt/uv/bin/uv sync --frozen --no-dev --no-editable"
WORKDIR /src
COPY pyproject.toml uv.lock ./
COPY libs/kafka/pyproject.toml libs/kafka/setup.py libs/kafka/
COPY libs/zookeeper/pyproject.toml libs/zookeeper/
COPY broker-image/pyproject.toml broker-image/
COPY operator/pyproject.toml operator/
COPY pipelines/pyproject.toml pipelines/

# Other people's packages first: they change less often than ours.
FROM build AS broker-build
RUN $UV_SYNC --package barnabas-broker --extra cli --no-install-workspace
COPY libs libs
COPY broker-image/src broker-image/src
RUN $UV_SYNC --package barnabas-broker --extra cli
# What runs for each produced record and request is compiled, or this image is not worth shipping.
RUN python -c "from barnabas_kafka.protocol import plain_commit, plain_fetch, plain_heartbeat, plain_produce, \
        plain_rebalance; \
    from barnabas_kafka.records import walk; \
    compiled = plain_commit, plain_fetch, plain_heartbeat, plain_produce, plain_rebalance, walk; \
    assert all(module.COMPILED for module in compiled)"

FROM python AS broker
LABEL org.opencontainers.image.title="Barnabas broker" \
      org.opencontainers.image.description="A broker that speaks Kafka's protocol, and its commands" \
      org.opencontainers.image.licenses=Apache-2.0
COPY broker-image/rootfs/etc/barnabas /etc/barnabas
COPY --from=broker-build /opt/barnabas /opt/barnabas
RUN install -d -o 1001 -g 1001 /var/lib/barnabas
USER 1001:1001
EXPOSE 9092
CMD ["barnabas", "broker", "start", "--supervised", "--config", "/etc/barnabas/server.properties"]

FROM build AS operator-build
# Half of the Kubernetes client is the same once more for asyncio, which nothing here imports.
RUN $UV_SYNC --package barnabas-operator --no-install-workspace \
 && rm -r /opt/barnabas/lib/python3.13/site-packages/kubernetes/aio
COPY libs libs
COPY operator/src operator/src
RUN $UV_SYNC --package barnabas-operator

FROM python AS operator
LABEL org.opencontainers.image.title="Barnabas operator" \
      org.opencontainers.image.description="The operator of KafkaClusters, KafkaTopics, KafkaUsers and KafkaPipelines" \
      org.opencontainers.image.licenses=Apache-2.0
COPY --from=operator-build /opt/barnabas /opt/barnabas
USER 1001:1001
CMD ["python", "-m", "barnabas_operator"]

# A Java of the modules that Spark and ZooKeeper use: 80 MB instead of 200.
FROM ${BASE} AS java-build
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends openjdk-21-jdk-headless \
 && rm -rf /var/lib/apt/lists/*
RUN jlink --output /opt/java --no-header-files --no-man-pages --strip-java-debug-attributes \
      --generate-cds-archive --add-modules java.base,java.compiler,java.desktop,java.instrument,\
java.logging,java.management,java.naming,java.net.http,java.rmi,java.scripting,java.security.jgss,\
java.security.sasl,java.sql,java.xml,jdk.crypto.ec,jdk.httpserver,jdk.incubator.vector,jdk.jfr,\
jdk.management,jdk.naming.dns,jdk.net,jdk.security.auth,jdk.security.jgss,jdk.unsupported,jdk.zipfs \
 && rm /opt/java/lib/server/classes_nocoops.jsa \
 && cp -L /etc/ssl/certs/java/cacerts /opt/java/lib/security/cacerts

FROM python AS java
COPY --from=java-build /opt/java /opt/java
ENV JAVA_HOME=/opt/java \
    PATH=/opt/barnabas/bin:/opt/java/bin:/usr/local/bin:/usr/bin:/bin

# Apache's own jars, held to the checksums of the lock file.
FROM python AS zookeeper-build
ARG BARNABAS_MAVEN_REPOSITORY
COPY pipelines/src/barnabas_pipelines/__init__.py pipelines/src/barnabas_pipelines/errors.py \
     pipelines/src/barnabas_pipelines/jars.py /build/barnabas_pipelines/
COPY zookeeper-image/jars.lock zookeeper-image/fetch_jars.py /build/
RUN PYTHONPATH=/build python3 /build/fetch_jars.py /build/jars.lock /opt/zookeeper/lib

FROM java AS zookeeper
LABEL org.opencontainers.image.title="Apache ZooKeeper for Barnabas" \
      org.opencontainers.image.description="Apache ZooKeeper with the entry point of an ensemble's members" \
      org.opencontainers.image.licenses=Apache-2.0
COPY --from=zookeeper-build /opt/zookeeper /opt/zookeeper
COPY zookeeper-image/logback.xml zookeeper-image/java.security /opt/zookeeper/conf/
COPY zookeeper-image/zookeeper_member.py /usr/local/bin/zookeeper-member
RUN install -d -o 1001 -g 1001 /var/lib/zookeeper
USER 1001:1001
EXPOSE 2181 2281 2888 3888
CMD ["zookeeper-member"]

# pyspark has no wheel: its sources are the jars, of which pipelines use less than half.
FROM build AS pipeline-build
ARG BARNABAS_MAVEN_REPOSITORY
COPY pipelines/image pipelines/image
RUN $UV_SYNC --package barnabas-pipelines --extra spark --no-install-workspace --no-cache \
 && python pipelines/image/trim_spark.py /opt/barnabas/lib/python3.13/site-packages/pyspark
COPY pipelines/src pipelines/src
RUN $UV_SYNC --package barnabas-pipelines --extra spark \
 && python -m barnabas_pipelines jars --into /opt/barnabas/lib/python3.13/site-packages/pyspark/jars

FROM java AS pipeline
LABEL org.opencontainers.image.title="Barnabas pipelines on Apache Spark" \
      org.opencontainers.image.description="Records of topics, exactly once, in files" \
      org.opencontainers.image.licenses=Apache-2.0
COPY --from=pipeline-build /opt/barnabas /opt/barnabas
RUN install -d -o 1001 -g 1001 /data
ENV HOME=/tmp
USER 1001:1001
# Fails where the trimming took too much.
RUN ["python", "-m", "barnabas_pipelines", "selftest"]
EXPOSE 8080
CMD ["python", "-m", "barnabas_pipelines", "run", "/etc/barnabas/pipeline.yaml"]
