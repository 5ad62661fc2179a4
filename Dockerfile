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
# New volumes take over the owner of these folders. Static files are collected when the
# installation starts (prepare_site): a volume would hide those of a newer image.
RUN mkdir -p /app/.local /app/.cache /app/static-collected /data/media \
    && chown -R croc: /data /app/.local /app/.cache /app/static-collected
USER croc
EXPOSE 8000
CMD ["gunicorn", "croc_annotate.wsgi", "-c", "deploy/gunicorn.conf.py"]

FROM web AS gpu
USER root
COPY --from=build-gpu /opt/venv /opt/venv
USER croc
CMD ["celery", "-A", "croc_annotate", "worker", "-Q", "gpu", "--pool", "solo", "--concurrency", "1"]
