// Command servers starts real MySQL, MariaDB and Kafka servers for a demo, a
// benchmark or tests that are run often.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

var kinds = []servers.Kind{servers.KindMySQL, servers.KindMariaDB, servers.KindKafka}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "servers:", err)
		stop()
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "servers",
		Short:         "Start real MySQL, MariaDB and Kafka servers on loopback ports",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(fetchCommand(), upCommand(), downCommand())
	return root
}

// chosen is the kinds that the arguments name, all when they name none.
func chosen(args []string) ([]servers.Kind, error) {
	if len(args) == 0 {
		return kinds, nil
	}
	var all []servers.Kind
	for _, arg := range args {
		kind := servers.Kind(arg)
		switch kind {
		case servers.KindMySQL, servers.KindMariaDB, servers.KindKafka:
			all = append(all, kind)
		default:
			return nil, fmt.Errorf("no server %q: there are %v", arg, kinds)
		}
	}
	return all, nil
}

func fetchCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "fetch [mysql|mariadb|kafka ...]",
		Short: "Get what the servers need and start nothing",
		RunE: func(cmd *cobra.Command, args []string) error {
			which, err := chosen(args)
			if err != nil {
				return err
			}
			missing := 0
			for _, kind := range which {
				if err := servers.Fetch(cmd.Context(), kind, cmd.ErrOrStderr()); err != nil {
					fmt.Fprintln(cmd.ErrOrStderr(), err)
					missing++
				}
			}
			if missing > 0 {
				return fmt.Errorf("%d of %d can't be had", missing, len(which))
			}
			return nil
		},
	}
}

// defaultDir is where up keeps its servers' data.
func defaultDir() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	return filepath.Join(cache, "binlog-outbox", "up")
}

// started is a server as up sees it.
type started interface {
	Done() <-chan struct{}
	LogPath() string
	Close() error
}

func upCommand() *cobra.Command {
	var dir string
	var detach bool
	cmd := &cobra.Command{
		Use:   "up [mysql|mariadb|kafka ...]",
		Short: "Start servers and print the environment that makes tests use them",
		Long: `Start servers and print the environment that makes tests use them.

They stay until ^C or, with --detach, until "down". Their data is kept. Root may log
in to the databases without a password; a connector logs in as ` + servers.CDCUser + ` with the password
` + servers.CDCPassword + `.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			which, err := chosen(args)
			if err != nil {
				return err
			}
			return up(cmd.Context(), which, dir, detach, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&dir, "dir", defaultDir(), "where the servers' data and logs are")
	cmd.Flags().BoolVar(&detach, "detach", false, "return once the servers are ready")
	return cmd
}

func up(ctx context.Context, which []servers.Kind, dir string, detach bool, out, log io.Writer) (err error) {
	ended := make(chan servers.Kind, len(which))
	for _, kind := range which {
		s, line, startErr := start(ctx, kind, filepath.Join(dir, string(kind)), detach, log)
		if s != nil && (!detach || startErr != nil) {
			defer func() { err = errors.Join(err, s.Close()) }()
		}
		if startErr != nil {
			return startErr
		}
		fmt.Fprintln(log, kind, "is ready, its log is", s.LogPath())
		fmt.Fprintln(out, line)
		go func() {
			<-s.Done()
			ended <- kind
		}()
	}
	if detach {
		return nil
	}
	select {
	case <-ctx.Done():
		return nil
	case kind := <-ended:
		return fmt.Errorf("%s has ended", kind)
	}
}

// start starts a server and answers the line that names it to tests.
func start(ctx context.Context, kind servers.Kind, dir string, detach bool, log io.Writer) (started, string, error) {
	if kind == servers.KindKafka {
		k, err := servers.StartKafka(ctx, servers.KafkaOptions{Dir: dir, Detached: detach, Log: log})
		if err != nil {
			return nil, "", err
		}
		return k, "export BINLOG_OUTBOX_TEST_KAFKA=" + k.Addr(), nil
	}
	run, variable := servers.StartMySQL, "BINLOG_OUTBOX_TEST_MYSQL"
	if kind == servers.KindMariaDB {
		run, variable = servers.StartMariaDB, "BINLOG_OUTBOX_TEST_MARIADB"
	}
	s, err := run(ctx, servers.Options{Dir: dir, Detached: detach, Log: log})
	if err != nil {
		return nil, "", err
	}
	return s, fmt.Sprintf("export %s=%s:%s@%s", variable, s.User(), s.Password(), s.Addr()), s.CreateCDCUser(ctx)
}

func downCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "down [mysql|mariadb|kafka ...]",
		Short: "Stop what up has started; the data stays",
		RunE: func(cmd *cobra.Command, args []string) error {
			which, err := chosen(args)
			if err != nil {
				return err
			}
			var errs []error
			for _, kind := range which {
				was, err := servers.StopDetached(cmd.Context(), filepath.Join(dir, string(kind)))
				if was && err == nil {
					fmt.Fprintln(cmd.ErrOrStderr(), kind, "has stopped")
				}
				errs = append(errs, err)
			}
			return errors.Join(errs...)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", defaultDir(), "where the servers' data and logs are")
	return cmd
}
