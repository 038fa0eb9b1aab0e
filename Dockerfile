# Two stages: the first resolves and compiles, the second carries only what runs, as nobody in particular.
# The tag moves with Python's security releases. For a build that can be repeated, give the digest that was looked at:
#   docker pull python:3.12-slim
#   docker build --build-arg PYTHON_IMAGE="$(docker inspect --format '{{index .RepoDigests 0}}' python:3.12-slim)" --tag gpuplan .
ARG PYTHON_IMAGE=python:3.12-slim
FROM ${PYTHON_IMAGE} AS build
WORKDIR /src
COPY requirements-build.txt requirements-all.txt ./
RUN python -m venv /opt/gpuplan \
 && /opt/gpuplan/bin/python -m pip install --no-cache-dir --require-hashes -r requirements-build.txt \
 && /opt/gpuplan/bin/uv pip install --no-cache --python /opt/gpuplan/bin/python --require-hashes --compile-bytecode -r requirements-all.txt
COPY pyproject.toml README.md LICENSE ./
COPY src/gpuplan/__init__.py src/gpuplan/py.typed src/gpuplan/
COPY catalog catalog
COPY providers providers
COPY planner planner
COPY api api
RUN /opt/gpuplan/bin/uv pip install --no-cache --python /opt/gpuplan/bin/python --no-deps --no-build-isolation --compile-bytecode . \
 && /opt/gpuplan/bin/uv pip uninstall --python /opt/gpuplan/bin/python uv hatchling editables

# Runs with a read-only file system: it writes to its volume alone, and to /tmp where a form is uploaded:
#   docker run --read-only --tmpfs /tmp:size=64m,mode=1777 --cap-drop ALL --security-opt no-new-privileges --memory 3g \
#     -v gpuplan:/var/lib/gpuplan -p 8080:8080 -e GPUPLAN_ADMIN_KEY_FILE=/run/secrets/admin-key \
#     -v "$PWD/admin-key:/run/secrets/admin-key:ro" gpuplan serve --host 0.0.0.0
# With PostgreSQL (GPUPLAN_DATABASE_URL_FILE) it needs no volume either.
FROM ${PYTHON_IMAGE}
RUN useradd --system --uid 10001 --create-home --home-dir /var/lib/gpuplan --shell /usr/sbin/nologin gpuplan
COPY --from=build /opt/gpuplan /opt/gpuplan
ENV PATH=/opt/gpuplan/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    MALLOC_ARENA_MAX=2 \
    GPUPLAN_MOST_MIB_PER_PLAN=512 \
    GPUPLAN_PLANNING_PROCESSES=5 \
    GPUPLAN_DATABASE_URL=sqlite:////var/lib/gpuplan/gpuplan.sqlite3
USER gpuplan
WORKDIR /var/lib/gpuplan
VOLUME /var/lib/gpuplan
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import httpx; httpx.get('http://127.0.0.1:8080/healthz', timeout=4).raise_for_status()"]
ENTRYPOINT ["gpuplan"]
CMD ["serve", "--host", "127.0.0.1", "--port", "8080"]
