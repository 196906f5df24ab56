# The image of `dovetail serve`: python:3.11-slim, the locked dependencies, the package; no build tools, no root.
FROM python:3.11-slim AS build
WORKDIR /build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore

COPY requirements.lock requirements-dev.lock ./
RUN python -m venv --without-pip /opt/dovetail \
    && pip --python /opt/dovetail/bin/python install --require-hashes --requirement requirements.lock
# Of the development lock, only what builds the package.
RUN awk '/^[a-z]/ { keep = /^(hatchling|packaging|pathspec|pluggy|tomlkit|trove-classifiers)==/ } keep' requirements-dev.lock \
        > build.lock \
    && pip install --require-hashes --requirement build.lock

COPY pyproject.toml README.md LICENSE ./
COPY extender extender
RUN pip wheel --no-deps --no-build-isolation --wheel-dir wheel . \
    && pip --python /opt/dovetail/bin/python install --no-index --no-deps wheel/*.whl

FROM python:3.11-slim
COPY --from=build /opt/dovetail /opt/dovetail
# One thread for numpy: the work is many small requests, and more threads would only contend for the container's CPU.
ENV PATH=/opt/dovetail/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    OPENBLAS_NUM_THREADS=1
# By number, so that the kubelet can tell that it is not root.
USER 65532:65532
EXPOSE 10351
ENTRYPOINT ["dovetail"]
CMD ["serve"]
