# The binary is static, so the image holds nothing else.
FROM golang:1.26 AS build
WORKDIR /src
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -o /binlog-outbox ./cmd/binlog-outbox

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /binlog-outbox /usr/bin/binlog-outbox
ENTRYPOINT ["/usr/bin/binlog-outbox"]
CMD ["run", "--config", "/etc/binlog-outbox/binlog-outbox.yaml"]
