package main

import (
	"log/slog"

	"github.com/binlog-outbox/binlog-outbox/debezium"
)

// tellOfKeys logs what became of keys of Debezium's files that have no effect.
func tellOfKeys(log *slog.Logger, lines []debezium.Line) {
	for _, l := range lines {
		if l.Outcome == debezium.Harmless || l.Outcome == debezium.Unknown {
			log.Info("key passed over", "file", l.File, "key", l.Key, "outcome", l.Outcome.String(), "why", l.Text)
		}
	}
}
