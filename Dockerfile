# The quality page for a team, behind a proxy that logs people in (docs/page.md):
#   make wheel && docker build -t lakegate-page .
# The base is named by its version; pin the digest that your registry shows for it.
FROM python:3.11.14-slim-bookworm

COPY requirements/page.txt /tmp/page.txt
COPY build/wheel/lakegate-*.whl /tmp/wheel/
RUN pip install --no-cache-dir --require-hashes --only-binary :all: -r /tmp/page.txt \
    && pip install --no-cache-dir --no-index --no-deps /tmp/wheel/lakegate-*.whl \
    && rm -r /tmp/page.txt /tmp/wheel \
    && useradd --system --create-home --uid 10001 lakegate

USER 10001
WORKDIR /home/lakegate
ENV HOME=/home/lakegate PYTHONUNBUFFERED=1 NO_COLOR=1
EXPOSE 8501
# A task names its stage: --stage prod page --team --host 0.0.0.0
ENTRYPOINT ["lakegate"]
CMD ["page", "--team", "--host", "0.0.0.0"]
