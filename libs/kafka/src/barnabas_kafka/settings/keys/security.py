"""TLS, SASL, authorisation, delegation tokens and passwords."""

from __future__ import annotations

from ..declare import (
    at_least,
    boolean,
    double,
    integer,
    java_class,
    long,
    one_of,
    password,
    short,
    string,
    words,
)
from ..definitions import Importance, Served, UpdateMode
from .notes import NO_JAVA

AUTHORIZERS = (
    "kafka.security.authorizer.AclAuthorizer",
    "kafka.security.auth.SimpleAclAuthorizer",
)
"""Kafka's class since 2.4, and the one that it replaced, with the same rules."""

AUTHORIZER_CLASS_NAME = string(
    "authorizer.class.name",
    "",
    "Java class that decides who may do what; empty allows every operation to all clients.",
    importance=Importance.LOW,
)
MECHANISMS_AMONG_BROKERS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
"""SASL mechanisms with which a broker connects to others."""

PRINCIPAL_BUILDER_CLASS = java_class(
    "principal.builder.class",
    "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
    "Java class that makes a principal of a connection.",
    update=UpdateMode.PER_BROKER,
    served=Served.NEVER,
    note="Java classes cannot be loaded; principals are made as Kafka's default class does.",
)
SECURITY_PROVIDERS = string(
    "security.providers",
    None,
    "Java security providers.",
    importance=Importance.LOW,
    served=Served.NEVER,
    note=NO_JAVA,
)
SSL_CLIENT_AUTH = string(
    "ssl.client.auth",
    "none",
    "Whether clients must (required), may (requested) or need not (none) show a certificate.",
    rule=one_of("required", "requested", "none"),
    update=UpdateMode.PER_BROKER,
)
SSL_PRINCIPAL_MAPPING_RULES = string(
    "ssl.principal.mapping.rules",
    "DEFAULT",
    "Rules that turn a certificate's name into a user name.",
    importance=Importance.LOW,
)
SSL_ALLOW_DN_CHANGES = boolean(
    "ssl.allow.dn.changes",
    False,
    "Whether a new key store may carry another distinguished name.",
    importance=Importance.LOW,
    served=Served.LATER,
)
SSL_ALLOW_SAN_CHANGES = boolean(
    "ssl.allow.san.changes",
    False,
    "Whether a new key store may carry other alternative names.",
    importance=Importance.LOW,
    served=Served.LATER,
)
SSL_PROTOCOL = string(
    "ssl.protocol",
    "TLSv1.3",
    "Newest TLS version offered.",
    update=UpdateMode.PER_BROKER,
    served=Served.OTHERWISE,
    note="ssl.enabled.protocols says which versions are offered.",
)
SSL_PROVIDER = string(
    "ssl.provider",
    None,
    "Java provider of TLS.",
    update=UpdateMode.PER_BROKER,
    served=Served.NEVER,
    note="TLS comes from Python's ssl module.",
)
SSL_ENABLED_PROTOCOLS = words(
    "ssl.enabled.protocols",
    ("TLSv1.2", "TLSv1.3"),
    "TLS versions allowed.",
    update=UpdateMode.PER_BROKER,
)
SSL_KEYSTORE_TYPE = string(
    "ssl.keystore.type",
    "JKS",
    "Format of the key store: JKS, PKCS12 or PEM.",
    update=UpdateMode.PER_BROKER,
)
SSL_KEYSTORE_LOCATION = string(
    "ssl.keystore.location",
    None,
    "File with the broker's key and certificate.",
    update=UpdateMode.PER_BROKER,
)
SSL_KEYSTORE_PASSWORD = password(
    "ssl.keystore.password",
    None,
    "Password of the key store.",
    update=UpdateMode.PER_BROKER,
)
SSL_KEY_PASSWORD = password(
    "ssl.key.password",
    None,
    "Password of the key inside.",
    update=UpdateMode.PER_BROKER,
)
SSL_KEYSTORE_KEY = password(
    "ssl.keystore.key",
    None,
    "The broker's key itself, as PEM.",
    update=UpdateMode.PER_BROKER,
)
SSL_KEYSTORE_CERTIFICATE_CHAIN = password(
    "ssl.keystore.certificate.chain",
    None,
    "The broker's certificates themselves, as PEM.",
    update=UpdateMode.PER_BROKER,
)
SSL_TRUSTSTORE_TYPE = string(
    "ssl.truststore.type",
    "JKS",
    "Format of the trust store: JKS, PKCS12 or PEM.",
    update=UpdateMode.PER_BROKER,
)
SSL_TRUSTSTORE_LOCATION = string(
    "ssl.truststore.location",
    None,
    "File with the certificates trusted.",
    update=UpdateMode.PER_BROKER,
)
SSL_TRUSTSTORE_PASSWORD = password(
    "ssl.truststore.password",
    None,
    "Password of the trust store.",
    update=UpdateMode.PER_BROKER,
)
SSL_TRUSTSTORE_CERTIFICATES = password(
    "ssl.truststore.certificates",
    None,
    "The trusted certificates themselves, as PEM.",
    update=UpdateMode.PER_BROKER,
)
SSL_KEYMANAGER_ALGORITHM = string(
    "ssl.keymanager.algorithm",
    "SunX509",
    "Java's way to pick a key.",
    update=UpdateMode.PER_BROKER,
    served=Served.NEVER,
    note="TLS comes from Python's ssl module.",
)
SSL_TRUSTMANAGER_ALGORITHM = string(
    "ssl.trustmanager.algorithm",
    "PKIX",
    "Java's way to check certificates.",
    update=UpdateMode.PER_BROKER,
    served=Served.NEVER,
    note="TLS comes from Python's ssl module.",
)
SSL_ENDPOINT_IDENTIFICATION_ALGORITHM = string(
    "ssl.endpoint.identification.algorithm",
    "https",
    "Whether a peer's certificate must carry its host name (https) or not (empty).",
    importance=Importance.LOW,
    update=UpdateMode.PER_BROKER,
)
SSL_SECURE_RANDOM_IMPLEMENTATION = string(
    "ssl.secure.random.implementation",
    None,
    "Java's source of random numbers.",
    importance=Importance.LOW,
    update=UpdateMode.PER_BROKER,
    served=Served.NEVER,
    note="TLS comes from Python's ssl module.",
)
SSL_CIPHER_SUITES = words(
    "ssl.cipher.suites",
    (),
    "Cipher suites allowed; empty leaves it to the TLS library.",
    update=UpdateMode.PER_BROKER,
)
SSL_ENGINE_FACTORY_CLASS = java_class(
    "ssl.engine.factory.class",
    None,
    "Java class that makes TLS engines.",
    importance=Importance.LOW,
    update=UpdateMode.PER_BROKER,
    served=Served.NEVER,
    note=NO_JAVA,
)
SASL_MECHANISM_INTER_BROKER_PROTOCOL = string(
    "sasl.mechanism.inter.broker.protocol",
    "GSSAPI",
    "SASL mechanism among brokers.",
    update=UpdateMode.PER_BROKER,
)
SASL_MECHANISM_CONTROLLER_PROTOCOL = string(
    "sasl.mechanism.controller.protocol",
    "GSSAPI",
    "SASL mechanism towards KRaft controllers.",
    importance=Importance.HIGH,
    served=Served.NEVER,
    note="This broker runs in ZooKeeper mode.",
)
SASL_ENABLED_MECHANISMS = words(
    "sasl.enabled.mechanisms",
    ("GSSAPI",),
    "SASL mechanisms that clients may use.",
    update=UpdateMode.PER_BROKER,
)
SASL_JAAS_CONFIG = password(
    "sasl.jaas.config",
    None,
    "Login module and its options for a SASL mechanism, in JAAS form.",
    update=UpdateMode.PER_BROKER,
)
SASL_SERVER_CALLBACK_HANDLER_CLASS = java_class(
    "sasl.server.callback.handler.class",
    None,
    "Java class that checks SASL credentials of a listener's mechanism; only Kafka's own two for "
    "OAUTHBEARER are known.",
)
SASL_CLIENT_CALLBACK_HANDLER_CLASS = java_class(
    "sasl.client.callback.handler.class",
    None,
    "Java class that supplies SASL credentials.",
    served=Served.NEVER,
    note=NO_JAVA,
)
SASL_LOGIN_CLASS = java_class(
    "sasl.login.class",
    None,
    "Java class that logs in.",
    served=Served.NEVER,
    note=NO_JAVA,
)
SASL_LOGIN_CALLBACK_HANDLER_CLASS = java_class(
    "sasl.login.callback.handler.class",
    None,
    "Java class that supplies login credentials; only Kafka's own for OAUTHBEARER is known.",
)
SASL_SERVER_MAX_RECEIVE_SIZE = integer(
    "sasl.server.max.receive.size",
    524_288,
    "Largest SASL message accepted before authentication.",
)
SASL_KERBEROS_PRINCIPAL_TO_LOCAL_RULES = words(
    "sasl.kerberos.principal.to.local.rules",
    ("DEFAULT",),
    "Rules that turn Kerberos principals into user names.",
    update=UpdateMode.PER_BROKER,
    served=Served.LATER,
)
SASL_KERBEROS_SERVICE_NAME = string(
    "sasl.kerberos.service.name",
    None,
    "Kerberos name of the service.",
    update=UpdateMode.PER_BROKER,
    served=Served.LATER,
)
SASL_KERBEROS_KINIT_CMD = string(
    "sasl.kerberos.kinit.cmd",
    "/usr/bin/kinit",
    "Path of kinit.",
    update=UpdateMode.PER_BROKER,
    served=Served.LATER,
)
SASL_KERBEROS_TICKET_RENEW_WINDOW_FACTOR = double(
    "sasl.kerberos.ticket.renew.window.factor",
    0.8,
    "Share of a ticket's life after which it is renewed.",
    update=UpdateMode.PER_BROKER,
    served=Served.LATER,
)
SASL_KERBEROS_TICKET_RENEW_JITTER = double(
    "sasl.kerberos.ticket.renew.jitter",
    0.05,
    "Random share added to the time of renewal.",
    update=UpdateMode.PER_BROKER,
    served=Served.LATER,
)
SASL_KERBEROS_MIN_TIME_BEFORE_RELOGIN = long(
    "sasl.kerberos.min.time.before.relogin",
    60_000,
    "Shortest time between two logins.",
    update=UpdateMode.PER_BROKER,
    served=Served.LATER,
)
SASL_LOGIN_REFRESH_WINDOW_FACTOR = double(
    "sasl.login.refresh.window.factor",
    0.8,
    "Share of a credential's life after which it is renewed.",
    update=UpdateMode.PER_BROKER,
    served=Served.LATER,
)
SASL_LOGIN_REFRESH_WINDOW_JITTER = double(
    "sasl.login.refresh.window.jitter",
    0.05,
    "Random share added to the time of renewal.",
    update=UpdateMode.PER_BROKER,
    served=Served.LATER,
)
SASL_LOGIN_REFRESH_MIN_PERIOD_SECONDS = short(
    "sasl.login.refresh.min.period.seconds",
    60,
    "Shortest time between two renewals.",
    update=UpdateMode.PER_BROKER,
    served=Served.LATER,
)
SASL_LOGIN_REFRESH_BUFFER_SECONDS = short(
    "sasl.login.refresh.buffer.seconds",
    300,
    "Time kept between a renewal and the end of the credential.",
    update=UpdateMode.PER_BROKER,
    served=Served.LATER,
)
SASL_LOGIN_CONNECT_TIMEOUT_MS = integer(
    "sasl.login.connect.timeout.ms",
    None,
    "How long a connection to an identity provider may take.",
    importance=Importance.LOW,
    served=Served.LATER,
)
SASL_LOGIN_READ_TIMEOUT_MS = integer(
    "sasl.login.read.timeout.ms",
    None,
    "How long an identity provider's answer may take.",
    importance=Importance.LOW,
    served=Served.LATER,
)
SASL_LOGIN_RETRY_BACKOFF_MS = long(
    "sasl.login.retry.backoff.ms",
    100,
    "First pause after a failed login.",
    importance=Importance.LOW,
    served=Served.LATER,
)
SASL_LOGIN_RETRY_BACKOFF_MAX_MS = long(
    "sasl.login.retry.backoff.max.ms",
    10_000,
    "Longest pause after failed logins.",
    importance=Importance.LOW,
    served=Served.LATER,
)
SASL_OAUTHBEARER_SCOPE_CLAIM_NAME = string(
    "sasl.oauthbearer.scope.claim.name",
    "scope",
    "Claim of a token that holds its scope.",
    importance=Importance.LOW,
)
SASL_OAUTHBEARER_SUB_CLAIM_NAME = string(
    "sasl.oauthbearer.sub.claim.name",
    "sub",
    "Claim of a token that holds its subject.",
    importance=Importance.LOW,
)
SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL = string(
    "sasl.oauthbearer.token.endpoint.url",
    None,
    "Address that gives tokens to this broker, for other brokers.",
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_URL = string(
    "sasl.oauthbearer.jwks.endpoint.url",
    None,
    "Address of the keys that sign tokens.",
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_REFRESH_MS = long(
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    3_600_000,
    "Time between two readings of those keys.",
    importance=Importance.LOW,
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MS = long(
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
    100,
    "First pause after a failed reading of the keys.",
    importance=Importance.LOW,
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MAX_MS = long(
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    10_000,
    "Longest pause after failed readings of the keys.",
    importance=Importance.LOW,
)
SASL_OAUTHBEARER_CLOCK_SKEW_SECONDS = integer(
    "sasl.oauthbearer.clock.skew.seconds",
    30,
    "Difference of clocks that is forgiven.",
    importance=Importance.LOW,
)
SASL_OAUTHBEARER_EXPECTED_AUDIENCE = words(
    "sasl.oauthbearer.expected.audience",
    None,
    "Audiences a token must be meant for.",
    importance=Importance.LOW,
)
SASL_OAUTHBEARER_EXPECTED_ISSUER = string(
    "sasl.oauthbearer.expected.issuer",
    None,
    "Issuer a token must come from.",
    importance=Importance.LOW,
)
DELEGATION_TOKEN_MASTER_KEY = password(
    "delegation.token.master.key",
    None,
    "Old name of delegation.token.secret.key.",
)
DELEGATION_TOKEN_SECRET_KEY = password(
    "delegation.token.secret.key",
    None,
    "Secret that signs delegation tokens; the same on all brokers.",
)
DELEGATION_TOKEN_MAX_LIFETIME_MS = long(
    "delegation.token.max.lifetime.ms",
    604_800_000,
    "Longest life of a delegation token.",
    rule=at_least(1),
)
DELEGATION_TOKEN_EXPIRY_TIME_MS = long(
    "delegation.token.expiry.time.ms",
    86_400_000,
    "Time until a delegation token must be renewed.",
    rule=at_least(1),
)
DELEGATION_TOKEN_EXPIRY_CHECK_INTERVAL_MS = long(
    "delegation.token.expiry.check.interval.ms",
    3_600_000,
    "Time between two searches for expired tokens.",
    rule=at_least(1),
    importance=Importance.LOW,
)
KEY_DERIVATIONS = tuple(f"PBKDF2WithHmacSHA{size}" for size in (512, 384, 256, 1))
PASSWORD_CIPHERS = ("AES/CBC/PKCS5Padding",)
CIPHER_KEY_BITS = (128, 192, 256)
PASSWORD_ITERATIONS_MAX = 1_000_000
"""Beyond any need; what is stored must not make a broker derive a key for minutes."""

PASSWORD_ENCODER_SECRET = password(
    "password.encoder.secret",
    None,
    "Secret that encrypts passwords changed at run time; without it they cannot be.",
)
PASSWORD_ENCODER_OLD_SECRET = password(
    "password.encoder.old.secret",
    None,
    "The secret before, as long as passwords are kept that it encrypted.",
)
PASSWORD_ENCODER_KEYFACTORY_ALGORITHM = string(
    "password.encoder.keyfactory.algorithm",
    None,
    "How the key is derived from the secret; PBKDF2WithHmacSHA512 unless it is given.",
    importance=Importance.LOW,
)
PASSWORD_ENCODER_CIPHER_ALGORITHM = string(
    "password.encoder.cipher.algorithm",
    "AES/CBC/PKCS5Padding",
    "Cipher for passwords kept in ZooKeeper.",
    importance=Importance.LOW,
)
PASSWORD_ENCODER_KEY_LENGTH = integer(
    "password.encoder.key.length",
    128,
    "Length of the derived key in bits.",
    rule=at_least(8),
    importance=Importance.LOW,
)
PASSWORD_ENCODER_ITERATIONS = integer(
    "password.encoder.iterations",
    4096,
    "Rounds of the derivation.",
    rule=at_least(1024),
    importance=Importance.LOW,
)
