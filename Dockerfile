# The binary is static: the image holds it and the certificates of public CAs.
FROM golang:1.26 AS build
WORKDIR /src
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -o /binlog-outbox ./cmd/binlog-outbox

RUN mkdir -p /data/var/lib/binlog-outbox

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /binlog-outbox /usr/bin/binlog-outbox
COPY --from=build --chown=65532:65532 /data/ /
USER 65532:65532
ENTRYPOINT ["/usr/bin/binlog-outbox"]
CMD ["run", "--config", "/etc/binlog-outbox/binlog-outbox.yaml"]
