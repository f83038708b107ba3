package main

import (
	"log/slog"

	"github.com/binlog-outbox/binlog-outbox/debezium"
)

// tellOfKeys logs what became of keys of Debezium's files that have no effect, or a
// worker's topic of offsets, which is not looked at.
func tellOfKeys(log *slog.Logger, lines []debezium.Line, ignore bool) {
	for _, l := range lines {
		switch {
		case l.Key == "offset.storage.topic" && !ignore:
			log.Warn("this topic is not looked at: where Debezium has read for a connector, its offset must be imported before the first start, or rows are lost or repeated (docs/migrate-from-debezium.md)", "file", l.File, "key", l.Key)
		case l.Outcome == debezium.Harmless || l.Outcome == debezium.Unknown:
			log.Info("key passed over", "file", l.File, "key", l.Key, "outcome", l.Outcome.String(), "why", l.Text)
		}
	}
}
