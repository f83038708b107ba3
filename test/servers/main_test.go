package servers

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// childVariable makes the test binary a program that starts a server, tells its
// process id and waits to be killed.
const childVariable = "BINLOG_OUTBOX_SERVERS_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(child())
	}
	// sarama's metrics library keeps one goroutine for the whole program.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"))
}

func child() int {
	s, err := StartMariaDB(context.Background(), Options{Own: true})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(s.PID(), s.Dir())
	time.Sleep(time.Hour)
	return 0
}
