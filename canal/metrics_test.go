package canal_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/canal/canaltest"
)

func TestMetrics(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := canal.NewMetrics(reg)
	if n, err := testutil.GatherAndCount(reg); n != 0 || err != nil {
		t.Errorf("before the first stream there are %d series, %v", n, err)
	}
	b := mysqlLog()
	b.Transaction(gtid(101), func() {
		insert(b, 1, 2)
		o := canaltest.Outbox()
		b.Map(o)
		b.Delete(o, row(1))
	})
	f := newFake(t, events(b, silence))
	f.cfg.Metrics = m
	r := f.open(set(t, sid.String()+":1-100"))
	if err := r.step(); err != nil {
		t.Fatal(err)
	}
	// The transaction is counted just after it is handed on.
	for r.Status().Transactions == 0 {
		if t.Context().Err() != nil {
			t.Fatal("the transaction is not counted")
		}
	}
	lint, err := testutil.GatherAndLint(reg)
	if err != nil || len(lint) > 0 {
		t.Errorf("lint: %v, %v", lint, err)
	}
	values := func() map[string]float64 {
		all, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, family := range all {
			for _, metric := range family.GetMetric() {
				name := family.GetName()
				for _, l := range metric.GetLabel() {
					name += "/" + l.GetValue()
				}
				got[name] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
			}
		}
		return got
	}
	got := values()
	for name, want := range map[string]float64{
		"connected": 1, "gtid_enabled": 1, "events_total/insert": 2, "events_total/delete": 1, "events_total/update": 0,
		"transactions_total": 1, "binlog_file_number": 1, "binlog_position_bytes": float64(r.at.Pos),
		"last_event_timestamp_seconds": 1_700_000_000,
	} {
		if v, ok := got["binlog_outbox_source_"+name]; !ok || v != want {
			t.Errorf("%s is %v (there: %t), want %v", name, v, ok, want)
		}
	}
	f.Cut()
	r.fails()
	_ = r.Close()
	got = values()
	if got["binlog_outbox_source_disconnects_total/disconnected"] != 1 ||
		got["binlog_outbox_source_events_total/insert"] != 2 {
		t.Errorf("after the end: %v", got)
	}
	if v, there := got["binlog_outbox_source_connected"]; !there || v != 0 {
		t.Errorf("connected is %v (there: %t) between streams", v, there)
	}
	m.Standby()
	if got = values(); len(got) != 0 {
		t.Errorf("a standby says %v", got)
	}
}
