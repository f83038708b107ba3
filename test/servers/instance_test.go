package servers

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
)

// TestRestartOfOneThatGivesUp restarts a program that ends by itself before it is
// ready, as often as its file says.
func TestRestartOfOneThatGivesUp(t *testing.T) {
	for name, test := range map[string]struct {
		ends int
		ok   bool
	}{
		"comes up at once":      {ends: 0, ok: true},
		"comes up at the third": {ends: 2, ok: true},
		"never comes up":        {ends: restartTries, ok: false},
	} {
		t.Run(name, func(t *testing.T) {
			folder, err := openFolder(t.Context(), "", "restart")
			if err != nil {
				t.Fatal(err)
			}
			started := 0
			up := folder.join("up")
			s := &instance{name: "server", folder: folder}
			s.command = func() *exec.Cmd {
				started++
				if started > 1+test.ends {
					return exec.Command("sh", "-c", "echo >"+up+"; exec sleep 600")
				}
				return exec.Command("sh", "-c", "exit 1")
			}
			s.ready = func(context.Context) error {
				_, err := os.Stat(up)
				return err
			}
			defer func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}()
			if err := s.launch(t.Context()); !errors.Is(err, errEnded) {
				t.Fatalf("the first start: %v", err)
			}
			err = s.Restart(t.Context())
			if (err == nil) != test.ok {
				t.Errorf("restarting: %v", err)
			}
			if want := min(test.ends, restartTries-1) + 2; started != want {
				t.Errorf("started %d times, not %d", started, want)
			}
		})
	}
}
