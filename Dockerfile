FROM python:3.11-slim AS build

ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_ROOT_USER_ACTION=ignore
RUN python -m venv /opt/consumer
WORKDIR /src

# What we need changes less often than what we write, so it has a layer of its own.
COPY requirements/build.txt requirements/run.txt requirements/
RUN pip install --require-hashes --only-binary :all: --requirement requirements/build.txt \
    && /opt/consumer/bin/pip install --require-hashes --only-binary :all: --requirement requirements/run.txt

COPY pyproject.toml README.md LICENSE ./
COPY config config
COPY consumer consumer
COPY schemas schemas
RUN pip wheel --no-deps --no-build-isolation --wheel-dir /wheels . \
    && /opt/consumer/bin/pip install --no-deps /wheels/*.whl


FROM python:3.11-slim

ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="consumer" \
      org.opencontainers.image.description="A RabbitMQ consumer daemon for Python jobs" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"

# A name for the number: some libraries ask who they run as.
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /tmp --shell /usr/sbin/nologin consumer
# Root's, so that the daemon can't change its own code. pip compiled it at build time.
COPY --from=build /opt/consumer /opt/consumer

ENV PATH="/opt/consumer/bin:${PATH}" \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 10001:10001
EXPOSE 8080
STOPSIGNAL SIGTERM
# The daemon itself is process 1: no shell stands between it and SIGTERM.
ENTRYPOINT ["consumer"]
CMD ["run"]
