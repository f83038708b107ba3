package ha

import (
	"net"
	"strings"
	"testing"
	"time"
)

func TestValidate(t *testing.T) {
	three := []Peer{{ID: "a", Addr: "10.0.0.1:7000"}, {ID: "b", Addr: "b.svc:7000"}, {ID: "c", Addr: "10.0.0.3:7000"}}
	local := []Peer{{ID: "a", Addr: "127.0.0.1:7000"}, {ID: "b", Addr: "localhost:7001"}}
	files := &TLS{CertFile: "c", KeyFile: "k", CAFile: "a"}
	tests := []struct {
		name   string
		change func(*Config)
		want   []string // all of these, or no error at all
	}{
		{"alone", func(*Config) {}, nil},
		{"three with TLS", func(c *Config) { c.Peers, c.TLS = three, files }, nil},
		{"three, told to be insecure", func(c *Config) { c.Peers, c.Insecure = three, true }, nil},
		{"loopback without TLS", func(c *Config) { c.Peers = local }, nil},
		{"three without TLS", func(c *Config) { c.Peers = three }, []string{"Listen", "needs TLS"}},
		{"loopback name, open listener", func(c *Config) { c.Peers, c.Listen = local, ":7000" },
			[]string{"Listen", "needs TLS"}},
		{"listener on a name", func(c *Config) { c.Peers, c.Listen = local, "myhost:7000" }, []string{"needs TLS"}},
		{"half of TLS", func(c *Config) { c.Peers, c.TLS = three, &TLS{CertFile: "c"} },
			[]string{"TLS: CertFile, KeyFile and CAFile"}},
		{"not among the peers", func(c *Config) { c.NodeID, c.Peers, c.TLS = "z", three, files; c.Listen = ":7000" },
			[]string{`"z", is not among them`}},
		{"another advertised address", func(c *Config) { c.Peers, c.TLS, c.Advertise = three, files, "10.9.9.9:1" },
			[]string{"Advertise"}},
		{"B093 unspecified address", func(c *Config) {
			c.TLS, c.Peers = files, []Peer{{ID: "a", Addr: "0.0.0.0:7000"}, {ID: "b", Addr: "b:7000"}}
		}, []string{"Peers[0].Addr"}},
		{"B095 id and address twice", func(c *Config) {
			c.TLS, c.Peers = files, []Peer{{ID: "a", Addr: "x:1"}, {ID: "a", Addr: "x:1"}}
		}, []string{"Peers[1].ID", "Peers[1].Addr"}},
		{"network without peers", func(c *Config) { c.Listen = "127.0.0.1:1" }, []string{"without peers"}},
		{"all at once", func(c *Config) { c.NodeID, c.DataDir, c.SnapshotThreshold = "a/b", "", 0 },
			[]string{"NodeID", "DataDir", "SnapshotThreshold"}},
		{"lease above heartbeat", func(c *Config) { c.HeartbeatTimeout, c.LeaseTimeout = time.Second, 2*time.Second },
			[]string{"LeaseTimeout: 2s is above HeartbeatTimeout 1s"}},
		{"election below heartbeat", func(c *Config) {
			c.HeartbeatTimeout, c.ElectionTimeout = time.Second,
				time.Millisecond*500
		}, []string{"ElectionTimeout: 500ms"}},
		{"no time to write", func(c *Config) { c.ApplyTimeout = 0 }, []string{"ApplyTimeout: 0s"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := DefaultConfig()
			c.NodeID, c.DataDir = "a", "/data"
			tt.change(&c)
			err := c.Validate()
			if (err == nil) != (tt.want == nil) {
				t.Fatalf("Validate: %v", err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v does not say %q", err, want)
				}
			}
		})
	}
}

func TestDefaultsFitTheSize(t *testing.T) {
	c := DefaultConfig()
	if c.withDefaults().HeartbeatTimeout != 50*time.Millisecond {
		t.Error("a node that is alone does not start fast")
	}
	c.NodeID, c.Peers = "a", []Peer{{ID: "a", Addr: "h:1"}, {ID: "b", Addr: "h:2"}}
	d := c.withDefaults()
	if d.HeartbeatTimeout != 250*time.Millisecond || d.LeaseTimeout > d.HeartbeatTimeout || d.Listen != "h:1" ||
		d.Advertise != "h:1" {
		t.Errorf("%+v", d)
	}
	c.HeartbeatTimeout = 100 * time.Millisecond
	if d := c.withDefaults(); d.LeaseTimeout != 100*time.Millisecond || d.ElectionTimeout != 100*time.Millisecond {
		t.Errorf("%+v", d)
	}
}

// TestListenerInUse: the port is named at once, not after a timeout.
func TestListenerInUse(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer ln.Close()
	c := DefaultConfig()
	c.NodeID, c.DataDir = "a", t.TempDir()
	c.Peers = []Peer{{ID: "a", Addr: ln.Addr().String()}, {ID: "b", Addr: "127.0.0.1:1"}}
	if _, err := Open(c, quiet(), nil); err == nil || !strings.Contains(err.Error(), ln.Addr().String()) {
		t.Errorf("Open: %v", err)
	}
	// Nothing is left behind: the directory can be used at once.
	n, err := Open(testConfig(t, c.DataDir), quiet(), nil)
	if err == nil {
		t.Error("another name on the same directory was accepted")
		must(t, n.Shutdown(testContext(t)))
	}
}
