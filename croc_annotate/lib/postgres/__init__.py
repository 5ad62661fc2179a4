"""Django's PostgreSQL backend with statements that the server prepares once."""
