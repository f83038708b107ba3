package ui

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/binlog-outbox/binlog-outbox/admin"
	"github.com/binlog-outbox/binlog-outbox/ha"
)

const ready = `document.querySelectorAll(".connector").length === 3 && document.querySelectorAll("#audit tbody tr").length > 0 && document.querySelector("#loggers tbody tr") && document.querySelector("#members tbody tr")`

// TestPageIsAccessible: in light and dark, on a phone and on a desk, with connectors
// in trouble, all well, and on a node that stands by.
func TestPageIsAccessible(t *testing.T) {
	n := newNode()
	base, _ := serve(t, admin.Config{}, n)
	b := open(t, base+"/ui")
	b.until("the page is whole", ready)
	b.until("what to do about the errors",
		`[...document.querySelectorAll(".trouble:not([hidden]) [data-f=advice]")].filter(e => e.innerText).length === 2`)
	b.until("rates and latencies",
		`document.querySelectorAll("#connector-orders-outbox path")[1].getAttribute("d").includes("L")`)
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{390, 1440} {
			b.size(width, 900, scheme)
			name := fmt.Sprintf("trouble-%d-%s", width, scheme)
			b.shoot(name, true)
			b.accessible(name)
		}
	}
	n.set(func(n *node) { n.well, n.wellAt = true, time.Now() })
	b.until("all is well", `document.querySelector("#verdict").dataset.level === "ok"`)
	b.size(1440, 900, "light")
	b.shoot("well-1440-light", true)
	b.accessible("well")
	n.set(func(n *node) { n.leader = "cdc-2" })
	b.until("another one leads", `document.querySelector("#verdict").dataset.level === "standby"`)
	b.until("the cluster says so", `document.querySelector("#members-hint:not([hidden])")`)
	b.shoot("standby-1440-light", true)
	b.accessible("standby")
	n.set(func(n *node) { n.leader = "" })
	b.until("nobody leads", `document.querySelector("#verdict").dataset.level === "bad"`)
	b.accessible("no leader")
}

// TestActions: a connector is paused by keyboard and mouse, with a reason; what is
// refused is told in the dialog, and what was done is told to screen readers.
func TestActions(t *testing.T) {
	n := newNode()
	n.well, n.wellAt = true, time.Now()
	base, _ := serve(t, admin.Config{}, n)
	b := open(t, base+"/ui/")
	b.until("the page is whole", ready)
	const card = "#connector-orders-outbox"
	b.click(card + " [data-action=pause]")
	b.until("the dialog is open", `document.querySelector("#ask").open`)
	b.shoot("dialog-1440-light", false)
	b.accessible("dialog")
	b.until("the reason has the focus", `document.activeElement.id === "ask-reason"`)
	b.click("#ask-go")
	if n.states["orders-outbox"].State != ha.Running || !eval[bool](b, `document.querySelector("#ask").open`) {
		t.Error("it was paused without a reason")
	}
	b.do(input.InsertText("schema change"), chromedp.KeyEvent("\t"), input.InsertText("ann"), chromedp.KeyEvent("\r"))
	b.until("it is paused", `document.querySelector("`+card+`").dataset.level === "off"`)
	b.until("the dialog is closed", `!document.querySelector("#ask").open`)
	if w := n.Status().Connectors[1].Wanted; w.State != ha.Paused || w.Reason != "schema change" ||
		!strings.HasPrefix(w.By, "ann (unverified)") {
		t.Errorf("asked for: %+v", w)
	}
	b.until("the connector's name has the focus", `document.activeElement.id === "name-orders-outbox"`)
	b.until("it is told", `document.querySelector("#news").textContent.includes("orders-outbox: Paused")`)
	b.until("the audit list has it", `document.querySelector("#audit tbody tr").innerText.includes("schema change")`)
	b.click(card + " [data-action=resume]")
	b.do(input.InsertText("done"), chromedp.KeyEvent("\r"))
	b.until("it runs again", `document.querySelector("`+card+`").dataset.level === "ok"`)

	b.expectErrors(true) // the console tells of the 409
	b.click("#transfer")
	b.do(chromedp.SetValue("#ask-to", "cdc-3"), chromedp.SendKeys("#ask-reason", "kernel update"),
		chromedp.Click("#ask-go"))
	b.until("it is refused", `document.querySelector("#ask-refused").innerText.includes("cdc-3 is not in contact")`)
	b.shoot("refused-1440-light", false)
	b.do(chromedp.SetValue("#ask-to", ""), chromedp.Click("#ask-go"))
	b.until("another one leads", `document.querySelector("#verdict").dataset.level === "standby"`)
	n.set(func(n *node) { n.leader, n.well = "cdc-1", false })
	b.until("a connector has failed",
		`document.querySelector("#connector-billing-outbox [data-f=unpublished]:not([hidden])")`)
	b.click("#connector-billing-outbox [data-f=unpublished]")
	b.do(chromedp.SetValue("#ask-action", "skip"), chromedp.SendKeys("#ask-reason", "known bad"),
		chromedp.Click("#ask-go"))
	b.until("it is decided", `!document.querySelector("#ask").open`)
	n.set(func(n *node) {
		if want := (admin.RowRequest{Transaction: "9be2f2a1-5c1d-11ee-8c99-0242ac120002:771203", Row: 3,
			Action: "skip"}); n.decided != want {
			t.Errorf("decided: %+v, want %+v", n.decided, want)
		}
	})
	b.do(chromedp.Click("#loggers button"), chromedp.SendKeys("#ask-reason", "why is it slow"), chromedp.KeyEvent("\x1b"))
	b.until("Escape closes the dialog", `!document.querySelector("#ask").open`)
}

// fakepassword
const hash = "$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi"

// TestRoles: the browser logs in; who may only look is told so.
func TestRoles(t *testing.T) {
	n := newNode()
	file := filepath.Join(t.TempDir(), "web.yaml")
	if err := os.WriteFile(file, []byte("basic_auth_users: {vera: "+hash+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	base, _ := serve(t, admin.Config{WebConfig: file, Auth: func() admin.Auth { return admin.Auth{Users: true} },
		Roles: map[string]admin.Role{"vera": admin.View}}, n)
	b := open(t, strings.Replace(base, "http://", "http://vera:fakepassword@", 1)+"/ui/")
	b.until("the page is whole", ready)
	b.expectErrors(true)
	b.click("#connector-orders-outbox [data-action=stop]")
	b.do(chromedp.SendKeys("#ask-reason", "I want to"), chromedp.Click("#ask-go"))
	b.until("it is refused", `document.querySelector("#ask-refused").innerText.includes("vera has the role view")`)
	if n.Status().Connectors[1].Wanted.State != ha.Running {
		t.Error("it was stopped all the same")
	}
}

// TestLostContact: a page that is cut off says so and since when, and comes back.
func TestLostContact(t *testing.T) {
	n := newNode()
	base, end := serve(t, admin.Config{}, n)
	b := open(t, base+"/ui/")
	b.until("the page is whole", ready)
	b.until("events come", `document.querySelector("#contact").dataset.state === "live"`)
	// The events of name "error" come while a connector is in trouble, and are none of
	// the stream's: it goes on over several of them.
	b.until("errors of connectors leave the stream alone", `await new Promise((done) => {
		const s = new EventSource("/v1/events"), contact = document.querySelector("#contact");
		let n = 0, live = true;
		s.addEventListener("error", (e) => {
			if (!(e instanceof MessageEvent)) return;
			live &&= contact.dataset.state === "live";
			if (++n === 3) { s.close(); done(live) }
		});
	})`)
	b.expectErrors(true)
	end()
	b.until("it is told", `document.querySelector("#lost:not([hidden])")?.innerText.includes("No contact with cdc-1 for")`)
	b.until("it is told to screen readers", `document.querySelector("#news").textContent.includes("lost")`)
	b.shoot("lost-1440-light", false)
	b.accessible("lost")
	serve(t, admin.Config{Listen: strings.Replace(strings.TrimPrefix(base, "http://"), "localhost", "127.0.0.1", 1)}, n)
	b.until("it is back",
		`document.querySelector("#lost").hidden && document.querySelector("#contact").dataset.state === "live"`)
}

// TestHiddenPageRests: nobody looks, nothing is asked for.
func TestHiddenPageRests(t *testing.T) {
	n := newNode()
	base, _ := serve(t, admin.Config{}, n)
	b := open(t, base+"/ui/")
	b.until("events come", `document.querySelector("#contact").dataset.state === "live"`)
	hide := func(yes bool) {
		b.do(chromedp.Evaluate(fmt.Sprintf(`Object.defineProperty(document, "hidden", {value: %v, configurable: true}); document.dispatchEvent(new Event("visibilitychange"))`, yes), nil))
	}
	hide(true)
	// What is under way may still come; then nothing does for longer than any pace.
	b.until("nothing is asked for",
		`await new Promise(r => { performance.clearResourceTimings(); setTimeout(r, 6000) }).then(() => performance.getEntriesByType("resource").length === 0)`)
	hide(false)
	b.until("it is live again",
		`performance.getEntriesByType("resource").length > 0 || document.querySelector("#contact").dataset.state === "live"`)
	if !eval[bool](b, `document.querySelector("#lost").hidden`) {
		t.Error("what was not asked for counts as lost")
	}
}

// TestRunbooks: all of them are shown as they are meant.
func TestRunbooks(t *testing.T) {
	base, _ := serve(t, admin.Config{}, newNode())
	b := open(t, base+"/ui/runbook.html")
	b.until("the list", `document.querySelectorAll("#list a").length > 5`)
	for _, name := range eval[[]string](b, `[...document.querySelectorAll("#list a")].map(a => a.dataset.name)`) {
		b.click(`#list a[data-name="` + name + `"]`)
		b.until(name,
			`document.querySelector("#list a[aria-current]")?.dataset.name === "`+name+`" && document.querySelectorAll("#text h2").length >= 3`)
		if text := b.text("#text"); strings.ContainsAny(text, "`|#") {
			t.Errorf("%s has marks that were not understood:\n%s", name, text)
		}
	}
	b.click(`#list a[data-name="BinlogOutboxConnectorFailed"]`)
	b.until("the table", `document.querySelector("#text table")`)
	b.accessible("runbook")
	b.shoot("runbook-1440-light", true)
	b.size(390, 800, "dark")
	b.accessible("runbook on a phone")
	b.shoot("runbook-390-dark", true)
}

// TestWords: numbers and times as people read them.
func TestWords(t *testing.T) {
	base, _ := serve(t, admin.Config{}, newNode())
	b := open(t, base+"/ui/")
	for script, want := range map[string]string{
		`f.duration(0.0042)`: "4.2 ms", `f.duration(0.25)`: "250 ms", `f.duration(3)`: "3 s", `f.duration(3.21)`: "3.2 s",
		`f.duration(75)`:   "1 min 15 s",
		`f.duration(3600)`: "1 h", `f.duration(200000)`: "2 d 7 h", `f.duration(59.7)`: "1 min", `f.duration(NaN)`: "–",
		`f.duration(0)`: "0 ms",
		`f.bytes(0)`:    "0 B", `f.bytes(1536)`: "1.5 KiB", `f.bytes(41 << 20)`: "41 MiB",
		`f.rate(0)`: "0", `f.rate(3.14)`: "3.1", `f.rate(12345)`: "12,345", `f.rate(null)`: "–",
		`f.list(["a", "b", "c"])`: "a, b and c", `f.plural(1, "row")`: "1 row", `f.plural(2000, "row")`: "2,000 rows",
		`h.quantile([[1, 0], [2, 0], [Infinity, 0]], [[1, 0], [2, 10], [Infinity, 10]], 0.5)`:                                                        "1.5",
		`h.quantile([[1, 5], [Infinity, 5]], [[1, 5], [Infinity, 5]], 0.5)`:                                                                          "null",
		`JSON.stringify((() => { const r = new h.Rates(); r.read(1000, 5); r.read(3000, 25); r.read(4000, 30); return r.points.map(p => p[1]) })())`: "[null,10,5]",
		// Three that were held up for four seconds, and one that went back to 0.
		`JSON.stringify((() => { const r = new h.Rates(); r.read(1000, 0); for (const t of [5000, 5001, 5002]) r.read(t, (t - 4000) / 2); r.read(6000, 1); return r.points.map(p => Math.round(p[1])) })())`: "[0,125,0]",
		`JSON.stringify([...h.buckets('x_bucket{connector="a\\"b",le="0.5"} 3\nx_bucket{connector="a\\"b",le="+Inf"} 4\ny_bucket{connector="c",le="1"} 9', "x")])`:                                           `[["a\"b",[[0.5,3],[null,4]]]]`,
	} {
		got := eval[string](b,
			`Promise.all([import("/ui/format.js"), import("/ui/history.js")]).then(([f, h]) => String(`+script+`))`)
		if strings.ReplaceAll(got, "\u00a0", " ") != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
}
