package admin_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/binlog-outbox/binlog-outbox/admin"
)

// follower is what the server shows of a node.
type follower struct{}

func (follower) Status() admin.Status {
	return admin.Status{Node: "node-2", Role: "follower", Leader: "node-1"}
}

func (follower) Checks() []admin.Check {
	return []admin.Check{{Name: "raft", OK: true}, {Name: "data directory", Detail: "92 % full: make room"}}
}

// A node serves its probes, metrics and status; what changes something is asked of a
// Control, which this one has not.
func ExampleListen() {
	s, err := admin.Listen(admin.Config{Listen: "127.0.0.1:0"}, follower{}, nil, prometheus.NewRegistry(),
		slog.New(slog.DiscardHandler))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	r, err := http.Get("http://" + s.Addr() + "/readyz")
	if err != nil {
		fmt.Println(err)
		return
	}
	body, _ := io.ReadAll(r.Body)
	r.Body.Close()
	fmt.Printf("%d\n%s", r.StatusCode, body)
	stop()
	fmt.Println(<-ended)
	// Output:
	// 503
	// data directory: 92 % full: make room
	// <nil>
}
