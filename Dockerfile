# Serves a system or a part behind HTTP, without root and without build tools:
#   docker build -t lightning-rag .
#   docker run -p 8000:8000 -v "$PWD/checkpoints:/app/checkpoints:ro" -v "$PWD/indexes:/app/indexes:ro" lightning-rag \
#       --config configs/infer/drrag.yaml
# With CUDA: --build-arg REQUIREMENTS=requirements-gpu.txt, and docker run --gpus all. Options of pip, such as an index
# with CPU builds of torch: --build-arg PIP_OPTIONS="...". A key: -e LIGHTNING_RAG_KEY.
FROM python:3.11-slim AS build
ARG REQUIREMENTS=requirements.txt
ARG PIP_OPTIONS=""
WORKDIR /build
COPY requirements-core.txt requirements.txt requirements-gpu.txt requirements-serve.txt ./
RUN python -m venv /venv && \
    /venv/bin/pip install --no-cache-dir ${PIP_OPTIONS} -r ${REQUIREMENTS} -r requirements-serve.txt && \
    /venv/bin/pip uninstall --yes pip

FROM python:3.11-slim
WORKDIR /app
COPY --from=build /venv /venv
COPY common /app/common
COPY models /app/models
COPY datamodules /app/datamodules
COPY documents /app/documents
COPY harness /app/harness
COPY configs /app/configs
COPY infer.py /app/
RUN useradd --create-home --uid 10001 rag && python -m compileall -q /app && \
    mkdir /app/cache && chown rag /app/cache
USER rag
ENV OMP_WAIT_POLICY=passive PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1
EXPOSE 8000
HEALTHCHECK --start-period=120s CMD ["/venv/bin/python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/health')"]
ENTRYPOINT ["/venv/bin/python", "infer.py", "serve", "--host", "0.0.0.0"]
