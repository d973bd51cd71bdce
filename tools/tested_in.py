"""Where the tests of each module are: at the mirrored path, or in the file that is named here."""

from typing import Final

# Import path of each source tree, and where its tests live.
TREES: Final = {
    "libs/kafka/src/barnabas_kafka": "tests/kafka",
    "libs/zookeeper/src/barnabas_zookeeper": "tests/zookeeper",
    "broker-image/src/barnabas_broker": "tests/broker",
    "operator/src/barnabas_operator": "tests/operator",
    "pipelines/src/barnabas_pipelines": "tests/pipelines",
    "tools": "tests/tools",
}
# Tested through the thing they are part of, or by meeting real programs, rather than by a mirror:
# the file or folder that does it, which must be there.
_BROKER: Final = "broker-image/src/barnabas_broker/"
_KAFKA: Final = "libs/kafka/src/barnabas_kafka/"
_ZOOKEEPER: Final = "libs/zookeeper/src/barnabas_zookeeper/"
_HANDLER_TESTS: Final = "tests/broker/server/requests/handlers/"
_OPERATOR: Final = "operator/src/barnabas_operator/"
_REQUEST_TESTS: Final = "tests/broker/server/requests/"
_REPLICATION_TESTS: Final = "tests/broker/server/peers/replication/"
_FETCHER_TESTS: Final = f"{_REPLICATION_TESTS}test_replica_fetcher.py"
_NETWORK_TESTS: Final = "tests/broker/server/network/"
_TOKEN_TESTS: Final = "tests/broker/server/control/test_delegation_token_manager.py"
_TOKEN_STORE_TESTS: Final = "tests/broker/server/control/test_delegation_token_store.py"
_LOCAL: Final = "operator/src/barnabas_operator/local/"
_PIPELINES: Final = "pipelines/src/barnabas_pipelines/"
_SPARK_TESTS: Final = "tests/pipelines/spark/"
_CONTROLLER_PARTS: Final = (
    "adoption", "internal", "loading", "metadata_store", "requests", "startup", "writes",
)  # fmt: skip
_CORE_TESTS: Final = "tests/broker/controller/test_core.py"
# Small modules of one family, tested in one file of it.
_FAMILIES: Final = {
    f"{_BROKER}coordinator/group/consumer/test_target_assignment.py": (
        "availability", "fencing", "subscriptions", "target",
    ),
    f"{_BROKER}security/test_authorization.py": ("acls", "authorizer", "principals"),
    f"{_BROKER}server/requests/handlers/test_acls.py": (
        "create_acls", "delete_acls", "describe_acls",
    ),
    f"{_BROKER}server/requests/handlers/test_group_requests.py": (
        "delete_groups", "describe_groups", "find_coordinator", "heartbeat", "join_group",
        "leave_group", "offset_delete", "sync_group",
    ),
    f"{_BROKER}server/requests/handlers/test_transaction_requests.py": (
        "add_offsets_to_txn", "describe_producers", "describe_transactions", "list_transactions",
    ),
    f"{_KAFKA}settings/test_setting_rules.py": ("metadata_version", "old_names", "rules"),
    f"{_BROKER}cli/groups/test_cluster.py": ("lag",),
    f"{_BROKER}cli/groups/test_resetting.py": ("reset_plan", "strategies"),
    f"{_BROKER}cli/test_main.py": ("cluster_id", "entry", "version"),
    f"{_BROKER}cli/test_mistakes.py": ("time_limits",),
    f"{_BROKER}cli/test_output.py": ("json_files",),
    f"{_BROKER}controller/test_zookeeper_changes.py": ("registrations",),
    f"{_BROKER}controller/test_startup.py": ("identity",),
    f"{_BROKER}controller/test_core.py": ("commands", "context", "events"),
    f"{_BROKER}controller/test_loading.py": ("stored",),
    f"{_BROKER}controller/test_writes.py": ("steps", "topic_znodes"),
    f"{_BROKER}coordinator/group/test_group.py": ("limits", "members", "states"),
    f"{_BROKER}coordinator/test_runtime.py": ("compatibility", "hashing", "results"),
    f"{_BROKER}coordinator/transaction/test_transaction.py": ("limits",),
    f"{_BROKER}log/cleaner/test_cleaning.py": ("grouping",),
    f"{_BROKER}log/cleaner/test_worker.py": ("throttle",),
    f"{_BROKER}log/test_batches.py": ("contents", "predicted"),
    f"{_BROKER}log/test_checkpoints.py": ("partition_metadata",),
    f"{_BROKER}log/test_segmented_log.py": ("log_segments",),
    f"{_BROKER}log/test_producer_state.py": ("markers",),
    f"{_BROKER}log/test_recovery.py": ("truncated_logs",),
    f"{_BROKER}server/metrics/test_families.py": ("quotas", "requests"),
    f"{_BROKER}server/requests/test_auto_creation.py": ("internal_topics",),
    f"{_BROKER}server/requests/test_dispatch.py": ("api_metrics", "handler", "request_context"),
    f"{_BROKER}server/background/test_log_mover.py": ("throttle",),
    f"{_BROKER}server/background/test_background_tasks.py": ("heap",),
    f"{_BROKER}server/node/test_broker_server.py": ("addresses", "announcement"),
    f"{_BROKER}server/peers/test_peers.py": ("controller_client",),
    f"{_BROKER}security/test_acl_explanation.py": ("acl_settings",),
    f"{_BROKER}security/test_sasl.py": ("sasl_settings",),
    f"{_BROKER}security/test_listener_tls.py": ("ssl_principals",),
    f"{_BROKER}cluster/test_image.py": ("quota_entity",),
    f"{_BROKER}controller/test_quota_changes.py": ("client_quota_manager",),
    f"{_BROKER}server/requests/test_client_quotas.py": ("throttling",),
    f"{_BROKER}controller/test_scram_credentials.py": ("user_credential_manager",),
    f"{_BROKER}server/control/test_zookeeper_security.py": ("login_file",),
    f"{_BROKER}zk/test_session.py": ("registry", "session_counts"),
    f"{_BROKER}zk/test_znodes.py": ("acls",),
    f"{_BROKER}zk/test_acl_znodes.py": ("names",),
    f"{_KAFKA}client/test_connection.py": ("authentication",),
    f"{_KAFKA}reassignment/test_planning.py": ("throttles",),
    f"{_KAFKA}protocol/test_fast_paths.py": (
        "group_values", "plain_commit", "plain_fetch", "plain_heartbeat", "plain_produce",
        "plain_rebalance",
    ),
    f"{_KAFKA}test_primitives.py": ("ids",),
    f"{_ZOOKEEPER}test_journal.py": ("journal_file",),
    f"{_ZOOKEEPER}test_service.py": ("status",),
    f"{_ZOOKEEPER}test_wire.py": ("errors",),
    f"{_PIPELINES}test_failures.py": ("errors",),
    f"{_OPERATOR}api/test_reading.py": ("authentication", "pipelines", "writing"),
    f"{_OPERATOR}plan/test_ledger.py": ("orphans", "shards"),
    f"{_OPERATOR}plan/test_snapshot.py": ("observed",),
    f"{_OPERATOR}reconcile/test_certificates.py": (
        "authorities", "cluster_secrets", "user_certificates",
    ),
    f"{_OPERATOR}reconcile/test_kafka_users.py": (
        "user_deletion", "user_files", "user_secrets", "users",
    ),
    f"{_OPERATOR}resources/test_user_secret.py": ("user_certificate",),
    "tools/test_gen_docs.py": ("gen_crds", "render_manifests"),
    "tools/test_needs.py": ("kind_needs",),
    "tools/testrun/test_processes.py": ("subreaper",),
}  # fmt: skip
TESTED_IN: Final = {
    **{
        f"{family.rpartition('/')[0]}/{module}.py": family.replace(source, tests)
        for family, modules in _FAMILIES.items()
        for source, tests in TREES.items()
        if family.startswith(source)
        for module in modules
    },
    f"{_KAFKA}protocol/messages/": "tests/kafka/protocol/",
    **{
        f"{_KAFKA}client/{part}.py": "tests/kafka/client/test_operation.py"
        for part in ("groups", "partitions", "security", "tokens", "transactions")
    },
    **{
        f"{_KAFKA}client/{part}.py": "tests/kafka/client/test_admin.py"
        for part in ("cluster", "config", "directory", "errors", "operation", "pool", "transport")
    },
    **{
        f"{_OPERATOR}{room}/certificates.py": "tests/operator/reconcile/test_certificates.py"
        for room in ("api", "resources")
    },
    f"{_OPERATOR}resources/issued_certificates.py": (
        "tests/operator/reconcile/test_issued_certificates.py"
    ),
    f"{_KAFKA}settings/keys/": "tests/kafka/settings/test_definitions.py",
    **{
        f"{_BROKER}controller/{part}.py": "tests/broker/controller/test_controller.py"
        for part in _CONTROLLER_PARTS
    },
    **{
        f"{_BROKER}controller/{part}.py": "tests/broker/controller/test_active_controller.py"
        for part in ("own_registration", "performing")
    },
    f"{_BROKER}controller/transitions/": _CORE_TESTS,
    f"{_BROKER}zk/operations.py": "tests/broker/controller/test_isolated_writes.py",
    f"{_BROKER}cli/kafka/": "tests/oracle/test_tools.py",
    f"{_BROKER}cli/perf/": "tests/broker/cli/perf/test_command.py",
    f"{_BROKER}cli/reassign/": "tests/broker/cli/reassign/test_command.py",
    f"{_BROKER}replica/appends.py": "tests/broker/replica/test_follower_session.py",
    f"{_BROKER}replica/delayed_delete_records.py": f"{_HANDLER_TESTS}test_delete_records.py",
    f"{_BROKER}replica/delayed_operation.py": "tests/broker/replica/test_delayed_produce.py",
    f"{_BROKER}replica/partition.py": _HANDLER_TESTS,
    f"{_BROKER}replica/topic_rules.py": _HANDLER_TESTS,
    f"{_BROKER}replica/broker_topic_stats.py": "tests/broker/server/metrics/test_families.py",
    f"{_BROKER}server/requests/broker_services.py": _HANDLER_TESTS,
    f"{_BROKER}server/process/broker_state.py": "tests/broker/server/metrics/test_admin.py",
    f"{_BROKER}server/process/volumes.py": (
        "tests/broker/server/requests/handlers/test_describe_log_dirs.py"
    ),
    f"{_BROKER}server/requests/fetch_conversion.py": f"{_HANDLER_TESTS}test_fetch.py",
    f"{_BROKER}server/network/half_close.py": f"{_REQUEST_TESTS}test_pending_responses.py",
    f"{_BROKER}server/requests/fast/heartbeat.py": f"{_REQUEST_TESTS}fast/test_differential.py",
    f"{_BROKER}server/requests/fetch_checks.py": f"{_REQUEST_TESTS}fast/test_differential.py",
    f"{_BROKER}server/requests/produce_checks.py": f"{_REQUEST_TESTS}fast/test_differential.py",
    f"{_BROKER}server/transport/tls_outbound.py": f"{_NETWORK_TESTS}test_sasl_authenticator.py",
    f"{_BROKER}server/requests/fetch_sessions.py": f"{_HANDLER_TESTS}test_fetch.py",
    f"{_BROKER}server/node/lifecycle.py": "tests/broker/testing/test_broker.py",
    f"{_BROKER}server/metrics/admin.py": "tests/broker/server/metrics/test_families.py",
    f"{_BROKER}server/metrics/scrape.py": "tests/broker/server/metrics/test_families.py",
    f"{_BROKER}server/network/listener.py": f"{_NETWORK_TESTS}test_session.py",
    f"{_BROKER}log/directory_loading.py": "tests/broker/log/test_directories.py",
    f"{_BROKER}server/control/change_notifications.py": _TOKEN_STORE_TESTS,
    f"{_BROKER}server/network/network_receive.py": f"{_NETWORK_TESTS}test_session.py",
    f"{_BROKER}server/network/socket_server.py": f"{_NETWORK_TESTS}test_listener.py",
    f"{_BROKER}server/node/broker_server.py": "tests/broker/testing/test_broker.py",
    f"{_BROKER}testing/secured.py": "tests/broker/testing/test_users.py",
    **{
        f"{_BROKER}server/peers/replication/{part}.py": _FETCHER_TESTS
        for part in ("leader_end_point", "replica_fetcher_manager", "truncation")
    },
    f"{_BROKER}server/control/producer_ids.py": f"{_HANDLER_TESTS}test_init_producer_id.py",
    **{
        f"{_BROKER}server/requests/handlers/{api}.py": f"{_NETWORK_TESTS}test_sasl_authenticator.py"
        for api in (
            "alter_user_scram_credentials",
            "describe_user_scram_credentials",
            "sasl_authenticate",
            "sasl_handshake",
        )
    },
    **{
        f"{_BROKER}server/requests/handlers/{api}.py": f"{_REQUEST_TESTS}test_client_quotas.py"
        for api in ("alter_client_quotas", "describe_client_quotas")
    },
    **{
        f"{_BROKER}server/{part}.py": _TOKEN_TESTS
        for part in (
            "requests/delegation_token_requests",
            "control/security_state",
            *(
                f"requests/handlers/{verb}_delegation_token"
                for verb in ("create", "describe", "expire", "renew")
            ),
        )
    },
    f"{_BROKER}zk/credentials.py": "tests/broker/security/test_jaas.py",
    f"{_BROKER}zk/store.py": "tests/broker/zk/test_embedded.py",
    f"{_LOCAL}tables.py": "tests/operator/local/test_command.py",
    f"{_LOCAL}topics.py": "tests/operator/local/test_up.py",
    f"{_LOCAL}admin.py": "tests/operator/local/test_users.py",
    f"{_LOCAL}pki.py": "tests/operator/local/test_users.py",
    f"{_LOCAL}user_directory.py": "tests/operator/local/test_users.py",
    f"{_LOCAL}user_rules.py": "tests/operator/local/test_documents.py",
    f"{_LOCAL}notes.py": "tests/operator/local/test_documents.py",
    f"{_LOCAL}cluster_rules.py": "tests/operator/local/test_documents.py",
    f"{_LOCAL}pipeline_rules.py": "tests/operator/local/test_documents.py",
    f"{_LOCAL}topic_rules.py": "tests/operator/local/test_documents.py",
    # What cannot be shown without a JVM.
    f"{_PIPELINES}jobs/": _SPARK_TESTS,
    f"{_PIPELINES}transforms/": _SPARK_TESTS,
    f"{_PIPELINES}runner.py": _SPARK_TESTS,
    f"{_PIPELINES}selftest.py": _SPARK_TESTS,
}
