package servers

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// KafkaVersion is the release of the brokers, and of Kafka Connect.
const KafkaVersion = "4.3.1"

// kafkaArtifacts is a broker with its tools and a logger.
var kafkaArtifacts = []artifact{
	"org.apache.kafka:kafka_2.13:" + KafkaVersion,
	"org.apache.kafka:kafka-tools:" + KafkaVersion,
	"org.apache.logging.log4j:log4j-slf4j-impl:2.25.5", // for slf4j 1.7, which Kafka has
	"org.apache.logging.log4j:log4j-core:2.25.5",
}

// kafkaDist is Kafka in the cache and the Java that runs it.
type kafkaDist struct {
	javaPath string
	home     string
	classes  string // the archive of loaded classes, empty when there is none
}

const kafkaLogging = `rootLogger.level=warn
rootLogger.appenderRef.console.ref=console
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%d{ISO8601} %p %m (%c)%n
`

// brokerLogging has a broker tell of the transaction markers that it does not write,
// which is no warning to it and lost or repeated records to its clients.
const brokerLogging = `logger.markers.name=kafka.coordinator.transaction.TransactionMarkerChannelManager
logger.markers.level=info
`

// findKafka answers the program, fetched if need be.
func findKafka(ctx context.Context, log io.Writer) (*kafkaDist, error) {
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	// Another set of jars is another folder.
	d := &kafkaDist{home: filepath.Join(cache, fmt.Sprintf("kafka-%s-%08x", KafkaVersion,
		crc32.ChecksumIEEE(fmt.Append(nil, kafkaArtifacts))))}
	if d.javaPath, err = findJava(ctx, log); err != nil {
		return nil, err
	}
	err = build(ctx, d.home, func(tmp string) error {
		say(log, "fetching kafka %s", KafkaVersion)
		if err := fetchJars(ctx, filepath.Join(tmp, "libs"), kafkaArtifacts, log); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(tmp, "log4j2.properties"), []byte(kafkaLogging), 0o644); err != nil {
			return err
		}
		fresh := kafkaDist{javaPath: d.javaPath, home: tmp}
		return fresh.makeTemplate(ctx)
	})
	if err != nil {
		return nil, err
	}
	return d, d.archiveClasses(ctx, log)
}

// archiveClasses makes an archive of the classes that a starting broker loads (Java's
// class data sharing), which saves more than half of the CPU time of each start. It
// belongs to one Java and to the jars at their final place. A Java that can't make
// one does without.
func (d *kafkaDist) archiveClasses(ctx context.Context, log io.Writer) error {
	version, err := exec.CommandContext(ctx, d.javaPath, "-version").CombinedOutput()
	if err != nil {
		return fmt.Errorf("running %s -version: %w", d.javaPath, err)
	}
	dir := fmt.Sprintf("%s-classes-%08x", d.home, crc32.ChecksumIEEE(append(version, d.javaPath...)))
	archive := filepath.Join(dir, "kafka.jsa")
	err = build(ctx, dir, func(tmp string) error {
		say(log, "preparing kafka %s for quick starts", KafkaVersion)
		training := KafkaOptions{
			Name:    "kafka-training",
			Dir:     filepath.Join(tmp, "training"),
			JVMArgs: []string{"-XX:ArchiveClassesAtExit=" + filepath.Join(tmp, "kafka.jsa")},
		}
		cluster, err := startBrokersOf(ctx, d, 1, training)
		if err != nil {
			return err
		}
		// A topic and an orderly end load what a first test would.
		err = cluster.Brokers[0].CreateTopic("training", 1, nil)
		if err := errors.Join(err, cluster.Close()); err != nil {
			return err
		}
		return os.RemoveAll(training.Dir)
	})
	if err != nil {
		return err
	}
	if exists(archive) {
		d.classes = archive
	}
	return nil
}

// java is a Java program on Kafka's class path.
func (d *kafkaDist) java(ctx context.Context, jvm []string, class string, args ...string) *exec.Cmd {
	all := []string{
		"-XX:+UseSerialGC",        // the quickest to start and the smallest
		"-XX:TieredStopAtLevel=1", // most tests end before the second compiler pays
		"-Dlog4j2.configurationFile=" + filepath.Join(d.home, "log4j2.properties"),
		"-cp", filepath.Join(d.home, "libs", "*"),
	}
	if d.classes != "" {
		all = append(all, "-XX:SharedArchiveFile="+d.classes)
	}
	all = append(append(append(all, jvm...), class), args...)
	return exec.CommandContext(ctx, d.javaPath, all...)
}

// makeTemplate formats a data folder once. Formatting takes a JVM more than a second,
// and only identities differ from one broker to the next.
func (d *kafkaDist) makeTemplate(ctx context.Context) error {
	settings := filepath.Join(d.home, "template.properties")
	data := filepath.Join(d.home, "template")
	text := "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:1\ncontroller.listener.names=CONTROLLER\n" +
		"listeners=PLAINTEXT://127.0.0.1:2,CONTROLLER://127.0.0.1:1\nlog.dirs=" + data + "\n"
	if err := os.WriteFile(settings, []byte(text), 0o644); err != nil {
		return err
	}
	return run(ctx, d.java(ctx, nil, "kafka.tools.StorageTool", "format", "-t", newUUID(), "-c", settings))
}

// format makes the data folder of a broker with that id.
func (d *kafkaDist) format(ctx context.Context, data string, id int, clusterID string) error {
	if err := copyTree(data, filepath.Join(d.home, "template")); err != nil {
		return err
	}
	meta := fmt.Sprintf("version=1\nnode.id=%d\ncluster.id=%s\ndirectory.id=%s\n", id, clusterID, newUUID())
	return os.WriteFile(filepath.Join(data, "meta.properties"), []byte(meta), 0o644)
}

// newUUID is a random id as Kafka writes them: 16 bytes in unpadded URL base64. It
// never begins with a dash, which Kafka's tools take for an option.
func newUUID() string {
	for {
		var id [16]byte
		rand.Read(id[:])
		id[6] = id[6]&0x0f | 0x40
		id[8] = id[8]&0x3f | 0x80
		if text := base64.RawURLEncoding.EncodeToString(id[:]); !bytes.HasPrefix([]byte(text), []byte("-")) {
			return text
		}
	}
}
