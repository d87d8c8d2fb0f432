# Connectivity reseller. Written where no container engine is: linted and read, not built there. docs/guide-operators.md says how to use it.

FROM python:3.11-slim-bookworm AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore PYTHONDONTWRITEBYTECODE=1
RUN python -m venv /opt/reseller
WORKDIR /source
# The packages first: they change less often than the service, so their layer is kept. Each is held to its hash.
COPY requirements.txt ./
RUN /opt/reseller/bin/pip install --no-compile --no-deps --require-hashes -r requirements.txt
# The service is its folders, on the path of the environment: what `run` does too. Nothing is fetched or built for it.
COPY LICENSE /opt/reseller/
COPY registry /opt/reseller/service/registry
COPY operations /opt/reseller/service/operations
COPY storage /opt/reseller/service/storage
COPY clients /opt/reseller/service/clients
COPY simulators /opt/reseller/service/simulators
COPY transports /opt/reseller/service/transports
RUN printf '%s\n' /opt/reseller/service > "$(/opt/reseller/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/reseller.pth" \
    && printf '#!/bin/sh\nexec /opt/reseller/bin/python -P -m transports.cli "$@"\n' > /opt/reseller/bin/reseller \
    && chmod 755 /opt/reseller/bin/reseller \
    # Bytecode that does not look at the time of its source: a start compiles nothing, and layers keep their times as they like.
    && /opt/reseller/bin/python -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/reseller/lib /opt/reseller/service

FROM python:3.11-slim-bookworm
ARG BUILD_SHA=unknown
LABEL org.opencontainers.image.title="Connectivity reseller" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="1.1.0" \
      org.opencontainers.image.revision="${BUILD_SHA}"
RUN groupadd --system --gid 10001 reseller \
    && useradd --system --uid 10001 --gid reseller --home-dir /data --shell /usr/sbin/nologin reseller \
    && install --directory --owner reseller --group reseller --mode 700 /data
COPY --from=build /opt/reseller /opt/reseller
ENV PATH=/opt/reseller/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    SERVICE_HOST=0.0.0.0 \
    SERVICE_DATA=/data \
    SERVICE_BUILD_SHA=${BUILD_SHA}
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
# Whether it should get work: with the database away it is unhealthy, and a restart mends nothing. Where unhealthy containers are restarted
# (Swarm), ask /health instead.
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as web; web.urlopen(f\"http://127.0.0.1:{os.environ.get('SERVICE_PORT') or 8000}/health/ready\", timeout=2)"]
ENTRYPOINT ["reseller"]
CMD ["serve"]
