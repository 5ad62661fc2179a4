# Two images from one file: `--target web` (no torch) and `--target gpu`.
FROM python:3.11-slim-bookworm AS base
ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PATH=/opt/venv/bin:$PATH
RUN useradd --system --uid 10001 --home-dir /app --shell /usr/sbin/nologin croc \
    && python -m venv /opt/venv
WORKDIR /app

FROM base AS build
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY croc_annotate/__init__.py croc_annotate/__init__.py
COPY generation/__init__.py generation/__init__.py
# Dependencies in a layer of their own: code changes do not install them again.
RUN pip install -c constraints.txt '.[onnx,oidc]' && pip uninstall -y croc-annotate

FROM build AS build-gpu
RUN pip install -c constraints.txt '.[gpu]' && pip uninstall -y croc-annotate

FROM base AS web
COPY --from=build /opt/venv /opt/venv
COPY manage.py pyproject.toml README.md LICENSE ./
COPY croc_annotate croc_annotate
COPY generation generation
COPY templates templates
COPY static static
COPY deploy deploy
ENV STATIC_ROOT=/app/static-collected MEDIA_ROOT=/data/media
RUN mkdir -p /app/.local /data/media \
    && SECRET_KEY=only-for-collecting-static-files-at-build-time python manage.py collectstatic --noinput \
    && rm -rf /app/.local/* \
    && chown -R croc: /data /app/.local
USER croc
EXPOSE 8000
CMD ["gunicorn", "croc_annotate.wsgi", "-c", "deploy/gunicorn.conf.py"]

FROM web AS gpu
USER root
COPY --from=build-gpu /opt/venv /opt/venv
USER croc
CMD ["celery", "-A", "croc_annotate", "worker", "-Q", "gpu", "--pool", "solo", "--concurrency", "1"]
