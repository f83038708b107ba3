package ui

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

const (
	axe          = "axe-core@4.14.1"
	axeIntegrity = "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
)

// patience is how long a page may take for anything.
const patience = time.Minute

// tab is a page of the browser. What its console says is an error of the test, unless
// quiet says that it is expected.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu    sync.Mutex
	quiet bool
}

// open starts a browser that shows an address.
func open(t *testing.T, address string) *tab {
	t.Helper()
	browser, err := servers.Chromium(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(browser.Path),
		chromedp.Env(browser.Env...),
		chromedp.NoSandbox, // it needs rights that a container does not give; only our own page is opened
		chromedp.DisableGPU, chromedp.WSURLReadTimeout(patience))
	allocated, end := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(end)
	// it tells of events that are newer than it
	ctx, cancel := chromedp.NewContext(allocated, chromedp.WithErrorf(func(string, ...any) {}))
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx}
	chromedp.ListenTarget(ctx, b.listen)
	if err := chromedp.Run(ctx); err != nil { // the browser lives as long as this context
		t.Fatal(err)
	}
	b.size(1440, 900, "light")
	b.do(chromedp.Navigate(address))
	return b
}

// listen takes what the page complains of: exceptions, refusals of the content
// security policy, files that are not there.
func (b *tab) listen(event any) {
	said := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		said = e.ExceptionDetails.Error()
	case *log.EventEntryAdded:
		said = fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
	case *runtime.EventConsoleAPICalled:
		for _, a := range e.Args {
			said += string(a.Value) + " "
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if said != "" && !b.quiet {
		b.t.Errorf("the console says: %s", said)
	}
}

// expectErrors says that the console may complain from now on, or no longer.
func (b *tab) expectErrors(yes bool) {
	b.mu.Lock()
	b.quiet = yes
	b.mu.Unlock()
}

func (b *tab) do(actions ...chromedp.Action) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// eval runs a script and returns its value as JSON would have it.
func eval[T any](b *tab, script string) T {
	b.t.Helper()
	var out T
	b.do(chromedp.Evaluate(script, &out, awaiting))
	return out
}

// awaiting has a script's promise be waited for.
func awaiting(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }

// until waits until a script's value is true.
func (b *tab) until(what, script string) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); !eval[bool](b,
		"(async () => Boolean("+script+"))()"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("%s: not within %v; the page says:\n%s", what, patience, eval[string](b, "document.body.innerText"))
		}
	}
}

// text is what an element shows.
func (b *tab) text(selector string) string {
	b.t.Helper()
	return eval[string](b, fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector))
}

// click presses what a person would: the element must be there to be seen.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.do(chromedp.Click(selector, chromedp.ByQuery, chromedp.NodeVisible))
}

func (b *tab) size(width, height int64, scheme string) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height), emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}))
}

// shoot keeps a picture of the whole page (go test -artifacts says where), or of what
// is in sight.
func (b *tab) shoot(name string, whole bool) {
	b.t.Helper()
	var png []byte
	if whole {
		b.do(chromedp.FullScreenshot(&png, 100))
	} else {
		b.do(chromedp.CaptureScreenshot(&png))
	}
	if err := os.WriteFile(filepath.Join(b.t.ArtifactDir(), name+".png"), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// accessible has axe judge the page, with all its rules.
func (b *tab) accessible(name string) {
	b.t.Helper()
	script, err := servers.NPMFile(b.t.Context(), axe, axeIntegrity, "package/axe.min.js", b.t.Output())
	if err != nil {
		b.t.Fatal(err)
	}
	found := eval[json.RawMessage](b,
		string(script)+`;axe.run().then(r => r.violations.map(v => ({id: v.id, impact: v.impact, help: v.help, nodes: v.nodes.map(n => n.html + "\n" + n.failureSummary)})))`)
	var violations []struct {
		ID, Impact, Help string
		Nodes            []string
	}
	if err := json.Unmarshal(found, &violations); err != nil {
		b.t.Fatal(err)
	}
	for _, v := range violations {
		b.t.Errorf("%s: axe: %s (%s): %s\n%s", name, v.ID, v.Impact, v.Help, strings.Join(v.Nodes, "\n"))
	}
	if wide := eval[int](b, "document.documentElement.scrollWidth - innerWidth"); wide > 0 {
		b.t.Errorf("%s: the page is %d px wider than the window", name, wide)
	}
}
