package servers

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// DebeziumVersion is the release that parity is measured against.
const DebeziumVersion = "3.6.1.Final"

// connectArtifacts is a Kafka Connect worker with Debezium's MySQL connector, its
// router and its converters, and a logger.
var connectArtifacts = []artifact{
	"org.apache.kafka:connect-runtime:" + KafkaVersion,
	"org.apache.kafka:connect-json:" + KafkaVersion,
	"io.debezium:debezium-connector-mysql:" + DebeziumVersion,
	"io.debezium:debezium-embedded:" + DebeziumVersion,
	"org.apache.logging.log4j:log4j-slf4j-impl:2.25.5", // for slf4j 1.7, which Connect has
	"org.apache.logging.log4j:log4j-core:2.25.5",
}

const connectLogging = `rootLogger.level=info
rootLogger.appenderRef.console.ref=console
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%d{ISO8601} %p %m (%c{1})%n
`

// ConnectOptions says how to start a Kafka Connect worker with Debezium on it.
type ConnectOptions struct {
	// Name is for log lines and the data folder's name; connect by default.
	Name string
	// Dir holds settings, offsets and log; a temporary folder when it is empty.
	Dir string
	// Kafka is the address of the brokers.
	Kafka string
	// Heap is the JVM's heap, 768m by default.
	Heap string
	// JVMArgs are more arguments for Java; they win over those given here, which make
	// for quick starts.
	JVMArgs []string
	// Libs is a folder with more jars for the class path; empty for none.
	Libs string
	// Connectors are the files of connectors that a standalone worker starts with.
	Connectors []string
	// Offsets is the file in which a standalone worker keeps how far its connectors
	// have come; one in Dir by default.
	Offsets string
	// Distributed asks for a worker of a cluster of one in place of a standalone
	// worker. It keeps everything in topics named after Name, and alone can deliver
	// exactly once.
	Distributed bool
	// Properties are more lines of the worker's properties file, as
	// key.converter=..., which it needs; they win over those given here.
	Properties []string
	// Java is the path of the program; empty for that of JAVA_HOME or of the path.
	// Debezium itself asks for 17; number texts are those of its images only from
	// 19 on.
	Java string
	// Log is told what takes long; nil for nobody.
	Log io.Writer
}

// Connect is a Kafka Connect worker with Debezium. Connectors come and go over its
// REST interface.
type Connect struct {
	instance
}

// StartConnect starts a worker, fetching the program if need be, and waits until its
// REST interface answers. ctx bounds the start, not the worker's life: close it.
func StartConnect(ctx context.Context, options ConnectOptions) (_ *Connect, err error) {
	if options.Name == "" {
		options.Name = "connect"
	}
	c := &Connect{instance: instance{name: options.Name, ports: map[string]*port{}}}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("starting %s: %w", options.Name, err), c.Close())
		}
	}()
	home, err := findConnect(ctx, options.Log)
	if err != nil {
		return nil, err
	}
	if options.Java == "" {
		if options.Java, err = findJava(ctx, options.Log); err != nil {
			return nil, err
		}
	}
	if c.folder, err = openFolder(ctx, options.Dir, options.Name); err != nil {
		return nil, err
	}
	if err = c.reserve(ctx, "rest", 0); err != nil {
		return nil, err
	}
	settings := c.folder.join("worker.properties")
	if err = os.WriteFile(settings, []byte(c.properties(options)), 0o644); err != nil {
		return nil, err
	}
	if options.Heap == "" {
		options.Heap = "768m"
	}
	args := append([]string{"-Xmx" + options.Heap, "-XX:+UseSerialGC"}, options.JVMArgs...)
	classes := filepath.Join(home, "libs", "*")
	if options.Libs != "" {
		classes += string(filepath.ListSeparator) + filepath.Join(options.Libs, "*")
	}
	args = append(args, "-Dlog4j2.configurationFile="+filepath.Join(home, "log4j2.properties"), "-cp", classes)
	if options.Distributed {
		args = append(args, "org.apache.kafka.connect.cli.ConnectDistributed", settings)
	} else {
		args = append(append(args, "org.apache.kafka.connect.cli.ConnectStandalone", settings), options.Connectors...)
	}
	c.command = func() *exec.Cmd { return exec.Command(options.Java, args...) }
	c.ready = c.ping
	if err = c.launch(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Connect) properties(options ConnectOptions) string {
	lines := []string{
		"bootstrap.servers=" + options.Kafka,
		"offset.flush.interval.ms=10000",
		"listeners=http://" + addr(c.ports["rest"].number),
		"plugin.discovery=only_scan",
	}
	if options.Distributed {
		lines = append(lines, "group.id="+options.Name)
		for _, store := range []string{"config", "offset", "status"} {
			lines = append(lines, store+".storage.topic="+options.Name+"-"+store, store+".storage.replication.factor=1")
		}
		lines = append(lines, "offset.storage.partitions=1", "status.storage.partitions=1")
	} else {
		offsets := options.Offsets
		if offsets == "" {
			offsets = c.folder.join("offsets")
		}
		lines = append(lines, "offset.storage.file.filename="+offsets)
	}
	return strings.Join(append(lines, options.Properties...), "\n") + "\n"
}

// URL is where the worker's REST interface is.
func (c *Connect) URL() string { return "http://" + addr(c.ports["rest"].number) }

func (c *Connect) ping(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL()+"/connectors", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", req.URL, resp.Status)
	}
	return nil
}

// findConnect answers the folder of the program, fetched if need be.
func findConnect(ctx context.Context, log io.Writer) (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	home := filepath.Join(cache, fmt.Sprintf("debezium-%s-%08x", DebeziumVersion,
		crc32.ChecksumIEEE(fmt.Append(nil, connectArtifacts))))
	return home, build(ctx, home, func(tmp string) error {
		say(log, "fetching debezium %s", DebeziumVersion)
		if err := fetchJars(ctx, filepath.Join(tmp, "libs"), connectArtifacts, log); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(tmp, "log4j2.properties"), []byte(connectLogging), 0o644)
	})
}
