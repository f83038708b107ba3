package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/binlog-outbox/binlog-outbox/admin"
	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/node"
)

// remote is what the commands that ask a node have in common: the flags that say
// which node, and how to ask it.
type remote struct {
	p *program

	server       string
	ca           string
	cert, key    string
	user         string
	passwordFile string
	reason       string
	timeout      time.Duration
}

func (p *program) remote(c *cobra.Command) *remote {
	r := &remote{p: p}
	f := c.PersistentFlags()
	f.StringVar(&r.server, "server", "",
		"`URL` of the node's admin server ("+config.EnvPrefix+"SERVER; default: admin.listen of the configuration)")
	f.StringVar(&r.ca, "cacert", "", "`file` with the authority that signed the server's certificate")
	f.StringVar(&r.cert, "cert", "", "`file` with a client certificate")
	f.StringVar(&r.key, "key", "", "`file` with the key of --cert")
	f.StringVar(&r.user, "user", "", "`name` of a user of the server ("+config.EnvPrefix+"USER)")
	f.StringVar(&r.passwordFile, "password-file", "", "`file` with the user's password (or "+config.EnvPrefix+"PASSWORD)")
	f.DurationVar(&r.timeout, "timeout", 2*time.Minute, "`time` to wait for an answer")
	return r
}

// writes adds the flag that every write needs.
func (r *remote) writes(c *cobra.Command) *cobra.Command {
	c.Flags().StringVar(&r.reason, "reason", "", "`why`, for the audit list")
	return c
}

// answerError is an answer that is an error.
type answerError struct {
	status int
	code   string
	detail string
}

func (e *answerError) Error() string { return fmt.Sprintf("%s (%s)", e.detail, e.code) }

// exitCode is the program's for the answer.
func (e *answerError) exitCode() int {
	switch {
	case e.code == admin.CodeNoLeader:
		return exitNoLeader
	case e.status == http.StatusNotFound:
		return exitNotFound
	case e.status == http.StatusConflict:
		return exitConflict
	default:
		return exitFailed
	}
}

// get asks for what is at path.
func (r *remote) get(ctx context.Context, path string) (json.RawMessage, error) {
	var out answer
	err := r.do(ctx, http.MethodGet, path, nil, nil, &out)
	return out.text, err
}

// write asks for a change; body may be nil.
func (r *remote) write(ctx context.Context, method, path string, body map[string]any) (json.RawMessage, error) {
	if strings.TrimSpace(r.reason) == "" {
		return nil, &usageError{err: errors.New("say why with --reason; it is kept in the audit list")}
	}
	all := map[string]any{"reason": r.reason, "by": userName()}
	for k, v := range body {
		all[k] = v
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	var out answer
	err = r.do(ctx, method, path, http.Header{"Content-Type": {"application/json"}}, bytes.NewReader(text), &out)
	return out.text, err
}

// maxAnswer bounds an answer that is kept in memory: whatever listens at the address may
// send without end.
const maxAnswer = 32 << 20

type answer struct{ text []byte }

// Write takes a part of the answer.
func (a *answer) Write(part []byte) (int, error) {
	if len(a.text)+len(part) > maxAnswer {
		return 0, fmt.Errorf("it is larger than %s", config.Size(maxAnswer))
	}
	a.text = append(a.text, part...)
	return len(part), nil
}

// do sends one request and copies the answer to out.
func (r *remote) do(ctx context.Context, method, path string, header http.Header, body io.Reader, out io.Writer) error {
	base, err := r.base()
	if err != nil {
		return err
	}
	transport, err := r.transport()
	if err != nil {
		return err
	}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, base+path, body)
	if err != nil {
		return &usageError{err: err}
	}
	for k, v := range header {
		req.Header[k] = v
	}
	if err := r.login(req); err != nil {
		return err
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return fmt.Errorf("asking the node: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusMultipleChoices {
		return readError(resp)
	}
	if _, err := io.Copy(out, resp.Body); err != nil {
		return fmt.Errorf("reading the node's answer: %w", err)
	}
	return nil
}

func readError(resp *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // what can't be read is not told
	e := &answerError{status: resp.StatusCode, code: http.StatusText(resp.StatusCode),
		detail: strings.TrimSpace(string(text))}
	var p struct{ Code, Detail string }
	if json.Unmarshal(text, &p) == nil && p.Code != "" {
		e.code, e.detail = p.Code, p.Detail
	}
	return e
}

// base is the URL of the admin server.
func (r *remote) base() (string, error) {
	server := r.server
	if server == "" {
		server, _ = r.p.lookup(config.EnvPrefix + "SERVER")
	}
	if server == "" {
		var err error
		if server, err = r.configured(); err != nil {
			return "", err
		}
	}
	if !strings.Contains(server, "://") {
		server = "http://" + server
	}
	u, err := url.Parse(server)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", &usageError{err: fmt.Errorf("--server %s is not a URL like http://127.0.0.1:8083", server)}
	}
	return strings.TrimRight(server, "/"), nil
}

// configured is the address that the configuration of this host's node gives.
func (r *remote) configured() (string, error) {
	const usual = "http://127.0.0.1:8083"
	if file, err := r.p.file(false); err != nil || file == "" {
		return usual, nil //nolint:nilerr // no configuration here, so the default of it
	}
	cfg, err := r.p.build(&config.Builder{KeepReferences: true}, nil)
	if err != nil {
		return "", err
	}
	host, port, err := net.SplitHostPort(cfg.Admin.Listen)
	if err != nil || port == "0" {
		return "", &usageError{err: fmt.Errorf("admin.listen is %q, which says not where the node listens: name it with "+
			"--server", cfg.Admin.Listen)}
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	scheme := "http"
	if cfg.Admin.WebConfig != "" && node.ServesTLS(cfg.Admin.WebConfig) {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort(host, port), nil
}

func (r *remote) transport() (*http.Transport, error) {
	c, err := node.TLSFiles{CA: r.ca, Cert: r.cert, Key: r.key}.Config()
	if err != nil {
		return nil, fmt.Errorf("--cacert, --cert and --key: %w", err)
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = c
	return t, nil
}

func (r *remote) login(req *http.Request) error {
	user := r.user
	if user == "" {
		user, _ = r.p.lookup(config.EnvPrefix + "USER")
	}
	if user == "" {
		return nil
	}
	password, _ := r.p.lookup(config.EnvPrefix + "PASSWORD")
	if r.passwordFile != "" {
		text, err := os.ReadFile(r.passwordFile)
		if err != nil {
			return fmt.Errorf("--password-file: %w", err)
		}
		password = strings.TrimRight(string(text), "\r\n")
	}
	req.SetBasicAuth(user, password)
	return nil
}

// print writes an answer in the format that was asked for; table writes it for people.
func (r *remote) print(answer json.RawMessage, table func(io.Writer) error) error {
	switch r.p.output {
	case "", "table", "text":
		return table(r.p.stdout)
	case "json":
		_, err := fmt.Fprintf(r.p.stdout, "%s\n", bytes.TrimSpace(answer))
		return err
	case "yaml":
		text, err := yaml.JSONToYAML(answer)
		if err == nil {
			_, err = r.p.stdout.Write(text)
		}
		return err
	}
	return &usageError{err: fmt.Errorf("the output format %q is not possible; table, json and yaml are", r.p.output)}
}
