"""All settings, read from the environment, typed and loud.

With nothing set the site runs on this machine only: SQLite, local files, debug off, loopback
hosts, a random key in ``.local/secret_key``. docs/operations.md explains every variable
(tests/test_docs.py keeps the two the same).
"""

from __future__ import annotations

import hashlib
import hmac
import logging
from pathlib import Path
from typing import Any

import django_stubs_ext
from celery.schedules import crontab
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured
from environs import FileAwareEnv
from environs import validate as check

from croc_annotate.lib.secretkey import read_or_create_secret_key

# Lets `ModelAdmin[Row]` and the like be written at run time too.
django_stubs_ext.monkeypatch()

BASE_DIR = Path(__file__).resolve().parent.parent
LOCAL_DIR = BASE_DIR / ".local"
LOOPBACK = ["localhost", "127.0.0.1", "[::1]"]

# Also reads VARIABLE_FILE, so that a secret can be a mounted file.
env = FileAwareEnv()

# --- what this installation is -------------------------------------------------------------
DEBUG = env.bool("DEBUG", default=False)
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=LOOPBACK)
DATABASE_URL = env.str("DATABASE_URL", default=f"sqlite:///{LOCAL_DIR / 'croc.sqlite3'}")
REDIS_URL = env.str("REDIS_URL", default="")
SITE_NAME = env.str("SITE_NAME", default="CROC Annotate")
CONTACT_EMAIL = env.str("CONTACT_EMAIL", default="")

ON_LOOPBACK_ONLY = set(ALLOWED_HOSTS) <= set(LOOPBACK)
ON_SQLITE = DATABASE_URL.startswith("sqlite")


def _secret_key() -> str:
    given = env.str("SECRET_KEY", default="")
    if given:
        if len(given) < 32:
            raise ImproperlyConfigured("SECRET_KEY: give at least 32 random characters.")
        return given
    if not (ON_SQLITE and ON_LOOPBACK_ONLY):
        raise ImproperlyConfigured(
            "SECRET_KEY: set it to a long random string. A key of its own is made only for "
            "an installation on SQLite that answers to loopback hosts."
        )
    return read_or_create_secret_key(LOCAL_DIR / "secret_key")


SECRET_KEY = _secret_key()
SECRET_KEY_FALLBACKS: list[str] = env.list("SECRET_KEY_FALLBACKS", default=[])
# Names of people in exports are keyed hashes. A key of its own lets SECRET_KEY be rotated
# without renaming everybody.
PSEUDONYM_KEY = (
    env.str("PSEUDONYM_KEY", default="").encode()
    or hmac.new(SECRET_KEY.encode(), b"pseudonyms", hashlib.sha256).digest()
)

# --- applications ----------------------------------------------------------------------------
# One app per stage of the data, in this order (pyproject.toml holds the import rule).
STAGES = [
    "croc_annotate.accounts",
    "croc_annotate.prompts",
    "croc_annotate.candidates",
    "croc_annotate.annotation",
    "croc_annotate.agreement",
    "croc_annotate.releases",
    "croc_annotate.benchmark",
    "croc_annotate.operations",
    "generation",
]
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "axes",
    "csp",
    "rest_framework",
    "drf_spectacular",
    *STAGES,
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    # After the static files: those are not worth a line each.
    "croc_annotate.operations.middleware.RequestLogMiddleware",
    "croc_annotate.lib.conditional.ApiConditionalMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "croc_annotate.accounts.rate_limits.RateLimitMiddleware",
    "croc_annotate.accounts.middleware.own_timezone",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "axes.middleware.AxesMiddleware",
]
ROOT_URLCONF = "croc_annotate.urls"
WSGI_APPLICATION = "croc_annotate.wsgi.application"
ASGI_APPLICATION = "croc_annotate.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

# --- database --------------------------------------------------------------------------------


def _database() -> dict[str, Any]:
    config: dict[str, Any] = env.dj_db_url("DATABASE_URL", default=DATABASE_URL)
    if config["ENGINE"] == "django.db.backends.sqlite3":
        Path(config["NAME"]).parent.mkdir(parents=True, exist_ok=True)
        # IMMEDIATE: a transaction that will write takes the lock at its start and waits for
        # it, instead of failing half-way with "database is locked".
        config["OPTIONS"] = {
            "transaction_mode": "IMMEDIATE",
            "timeout": 30,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        }
    else:
        config["ENGINE"] = "croc_annotate.lib.postgres"
        config["CONN_MAX_AGE"] = env.int("DATABASE_CONN_MAX_AGE", default=60)
        config["PREPARED_STATEMENTS"] = env.bool("DATABASE_PREPARED_STATEMENTS", default=True)
        config["CONN_HEALTH_CHECKS"] = True
    config["ATOMIC_REQUESTS"] = False
    return config


DATABASES = {"default": _database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- people ----------------------------------------------------------------------------------
AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_URL = "accounts:login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "accounts:login"
AXES_FAILURE_LIMIT = env.int("LOGIN_FAILURE_LIMIT", default=10)
AXES_COOLOFF_TIME = env.int("LOGIN_COOLOFF_HOURS", default=1)
# By name and address together: people behind one address must not lock each other out.
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
# One reading of forwarded addresses for the lock-out and the rate limits.
AXES_CLIENT_IP_CALLABLE = "croc_annotate.lib.addresses.client_address"
AXES_VERBOSE = False
AXES_LOCKOUT_TEMPLATE = "429.html"

# Sign-in through an organisation (OpenID Connect): active once the first three are set.
OIDC_ISSUER = env.str("OIDC_ISSUER", default="")
OIDC_CLIENT_ID = env.str("OIDC_CLIENT_ID", default="")
OIDC_CLIENT_SECRET = env.str("OIDC_CLIENT_SECRET", default="")
OIDC_LABEL = env.str("OIDC_LABEL", default="")
OIDC_NEW_ACCOUNTS = env.bool("OIDC_NEW_ACCOUNTS", default=True)
OIDC_ALLOWED_DOMAINS: list[str] = env.list("OIDC_ALLOWED_DOMAINS", default=[])
OIDC_EXTRA_SCOPES: list[str] = env.list("OIDC_EXTRA_SCOPES", default=[])
OIDC_ROLE_CLAIM = env.str("OIDC_ROLE_CLAIM", default="groups")
OIDC_ADMINS: list[str] = env.list("OIDC_ADMINS", default=[])
OIDC_REVIEWERS: list[str] = env.list("OIDC_REVIEWERS", default=[])
OIDC_ANNOTATORS: list[str] = env.list("OIDC_ANNOTATORS", default=[])
OIDC_OTHERS = env.str(
    "OIDC_OTHERS", default="annotator", validate=check.OneOf(["annotator", "refuse"])
)

# --- the web ---------------------------------------------------------------------------------
PROXY_COUNT = env.int("PROXY_COUNT", default=0, validate=check.Range(min=0, max=10))
# Requests in a minute; 0 is no limit.
RATE_LIMIT_SIGN_IN = env.int("RATE_LIMIT_SIGN_IN", default=60)
RATE_LIMIT_VISITORS = env.int("RATE_LIMIT_VISITORS", default=600)
RATE_LIMIT_PEOPLE = env.int("RATE_LIMIT_PEOPLE", default=3000)
RATE_LIMIT_TOKENS = env.int("RATE_LIMIT_TOKENS", default=3000)
HTTPS = env.bool("HTTPS", default=not ON_LOOPBACK_ONLY)
SESSION_ENGINE = "croc_annotate.accounts.sessions"
SESSION_COOKIE_SECURE = HTTPS
SESSION_COOKIE_AGE = env.int("SESSION_DAYS", default=14) * 86_400
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SECURE = HTTPS
CSRF_TRUSTED_ORIGINS: list[str] = env.list("CSRF_TRUSTED_ORIGINS", default=[])
CSRF_FAILURE_VIEW = "django.views.csrf.csrf_failure"
SECURE_SSL_REDIRECT = HTTPS and env.bool("SSL_REDIRECT", default=True)
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]
SECURE_HSTS_SECONDS = env.int("HSTS_SECONDS", default=31_536_000) if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
SECURE_REFERRER_POLICY = "same-origin"
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if PROXY_COUNT else None
X_FRAME_OPTIONS = "DENY"
S3_PUBLIC_ORIGIN = env.str("S3_PUBLIC_ORIGIN", default="")
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:", "blob:", *([S3_PUBLIC_ORIGIN] if S3_PUBLIC_ORIGIN else [])],
        "font-src": [SELF],
        "connect-src": [SELF, *([S3_PUBLIC_ORIGIN] if S3_PUBLIC_ORIGIN else [])],
        "manifest-src": [SELF],
        "worker-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}
DATA_UPLOAD_MAX_MEMORY_SIZE = 5_000_000

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = Path(env.str("STATIC_ROOT", default=str(LOCAL_DIR / "static")))
STATIC_ROOT.mkdir(parents=True, exist_ok=True)
_COLLECTED = (STATIC_ROOT / "staticfiles.json").exists()
# Before `collectstatic` (demo, development) files are served from where they stand.
WHITENOISE_USE_FINDERS = not _COLLECTED
WHITENOISE_AUTOREFRESH = DEBUG

# --- files -----------------------------------------------------------------------------------
MEDIA_ROOT = Path(env.str("MEDIA_ROOT", default=str(LOCAL_DIR / "media")))
MEDIA_URL = "media/"
# Set behind nginx: images are then sent by it (X-Accel-Redirect), not through Python.
X_ACCEL_PREFIX = env.str("X_ACCEL_PREFIX", default="")
S3_BUCKET = env.str("S3_BUCKET", default="")


def _default_storage() -> dict[str, Any]:
    if not S3_BUCKET:
        return {"BACKEND": "django.core.files.storage.FileSystemStorage"}
    return {
        "BACKEND": "storages.backends.s3.S3Storage",
        "OPTIONS": {
            "bucket_name": S3_BUCKET,
            "endpoint_url": env.str("S3_ENDPOINT_URL", default="") or None,
            "access_key": env.str("S3_ACCESS_KEY_ID", default="") or None,
            "secret_key": env.str("S3_SECRET_ACCESS_KEY", default="") or None,
            "region_name": env.str("S3_REGION", default="") or None,
            "addressing_style": env.str("S3_ADDRESSING_STYLE", default="auto"),
            "querystring_expire": env.int("S3_URL_SECONDS", default=900),
            "file_overwrite": True,
            "default_acl": None,
        },
    }


STORAGES = {
    "default": _default_storage(),
    "staticfiles": {"BACKEND": "croc_annotate.lib.staticstorage.ModuleAwareStaticStorage"},
}

# --- tasks and cache -------------------------------------------------------------------------
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": env.str("REDIS_PREFIX", default="croc:"),
        # A Redis that accepts and says nothing must not hold up every request.
        "OPTIONS": {"socket_connect_timeout": 1, "socket_timeout": 1},
    }
    if REDIS_URL
    else {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
}
CELERY_BROKER_URL = REDIS_URL or "memory://"
# Without a broker a task runs where it is called: the embedded default has no worker.
CELERY_TASK_ALWAYS_EAGER = not REDIS_URL
CELERY_TASK_EAGER_PROPAGATES = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_DEFAULT_QUEUE = "web"
CELERY_TASK_ROUTES = {"generation.tasks.*": {"queue": "gpu"}, "*.score_*": {"queue": "gpu"}}
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# Longer than the longest task, or Redis hands it out a second time while it still runs.
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": env.int("CELERY_VISIBILITY_TIMEOUT", default=6 * 3600),
    "global_keyprefix": env.str("REDIS_PREFIX", default="croc:"),
}
CELERY_TIMEZONE = "UTC"
# A GPU worker that was not heard of for this long has lost what it held.
GENERATION_LEASE_SECONDS = env.float("GENERATION_LEASE_SECONDS", default=180.0)
CELERY_BEAT_SCHEDULE: dict[str, Any] = {
    "expire-leases": {"task": "annotation.expire_leases", "schedule": 60.0},
    "mirror-studies": {"task": "annotation.mirror_studies", "schedule": 300.0},
    "apply-retention": {
        "task": "operations.apply_retention",
        "schedule": crontab(hour="3", minute="17"),
    },
    "renew-statistics": {"task": "agreement.renew_stale_statistics", "schedule": 60.0},
    "sweep-left-files": {"task": "candidates.sweep_left_files", "schedule": 300.0},
    "take-up-runs": {"task": "benchmark.take_up_runs", "schedule": 60.0},
}

# --- API -------------------------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "croc_annotate.accounts.tokens.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "EXCEPTION_HANDLER": "croc_annotate.lib.problems.problem_response",
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_PAGINATION_CLASS": "croc_annotate.lib.pagination.StatedPagination",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "CROC Annotate API",
    "DESCRIPTION": "Judge text–image pairs, watch agreement, read releases and leaderboards.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": True,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.IsAuthenticated"],
    "OAS_VERSION": "3.1.0",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "croc_annotate.api_description.describe",
    ],
    "ENUM_NAME_OVERRIDES": {
        "VerdictEnum": ["accept", "reject", "unsure"],
        "DecisionEnum": ["accept", "reject"],
    },
}

# --- language and time -----------------------------------------------------------------------
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("de", "Deutsch")]
LOCALE_PATHS = [BASE_DIR / "croc_annotate" / "locale"]
FORMAT_MODULE_PATH = "croc_annotate.lib.formats"
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"

# --- logs and monitoring ---------------------------------------------------------------------
LOG_LEVEL = env.log_level("LOG_LEVEL", default=logging.INFO)
LOG_FORMAT = env.str("LOG_FORMAT", default="line", validate=check.OneOf(["line", "json"]))
METRICS_TOKEN = env.str("METRICS_TOKEN", default="")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"},
        "json": {"()": "croc_annotate.operations.logs.JsonFormatter"},
    },
    "filters": {"route": {"()": "croc_annotate.operations.logs.RouteOnly"}},
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": LOG_FORMAT,
            "filters": ["route"],
        }
    },
    "root": {"handlers": ["console"], "level": LOG_LEVEL},
    # One line a request comes from RequestLogMiddleware; Django's own repeats it.
    "loggers": {"django.server": {"level": "WARNING"}},
}

# --- what is forgotten, and after how many days (0: never) ------------------------------------
# Platform ids: after the last answer in the last of a person's campaigns, all closed.
RETENTION_PLATFORM_ID_DAYS = env.int("RETENTION_PLATFORM_ID_DAYS", default=0)
RETENTION_SIGN_IN_DAYS = env.int("RETENTION_SIGN_IN_DAYS", default=90)
RETENTION_ADMIN_LOG_DAYS = env.int("RETENTION_ADMIN_LOG_DAYS", default=365)

# --- crowd platform --------------------------------------------------------------------------
PROLIFIC_API_URL = env.str("PROLIFIC_API_URL", default="https://api.prolific.com")
PROLIFIC_API_TOKEN = env.str("PROLIFIC_API_TOKEN", default="")
PROLIFIC_WEBHOOK_SECRET = env.str("PROLIFIC_WEBHOOK_SECRET", default="")
