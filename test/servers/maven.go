package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// artifact is a Maven artifact: group:name:version.
type artifact string

// pom answers a project that depends on the artifacts and is nothing else.
func pom(artifacts []artifact) (string, error) {
	var b strings.Builder
	b.WriteString(`<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId><artifactId>servers</artifactId><version>1</version><packaging>pom</packaging>
`)
	if mirror := os.Getenv("BINLOG_OUTBOX_MAVEN_MIRROR"); mirror != "" {
		// A repository of that id takes the place of Maven's default one.
		for _, list := range []string{"repositories", "pluginRepositories"} {
			one := strings.TrimSuffix(strings.Replace(list, "ies", "y", 1), "s")
			fmt.Fprintf(&b, "  <%s><%s><id>central</id><url>%s</url></%s></%s>\n", list, one, mirror, one, list)
		}
	}
	b.WriteString("  <dependencies>\n")
	for _, a := range artifacts {
		parts := strings.Split(string(a), ":")
		if len(parts) != 3 {
			return "", fmt.Errorf("artifact %q is not group:name:version", a)
		}
		fmt.Fprintf(&b,
			"    <dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version></dependency>\n", parts[0],
			parts[1], parts[2])
	}
	b.WriteString("  </dependencies>\n</project>\n")
	return b.String(), nil
}

// fetchJars puts the artifacts and all that they need at run time into dir.
func fetchJars(ctx context.Context, dir string, artifacts []artifact, log io.Writer) error {
	mvn, err := tool(ctx, "mvn", "maven", log)
	if err != nil {
		return err
	}
	text, err := pom(artifacts)
	if err != nil {
		return err
	}
	project, err := os.MkdirTemp("", "binlog-outbox-pom-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(project)
	path := filepath.Join(project, "pom.xml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return err
	}
	return run(ctx, exec.CommandContext(ctx, mvn, "-q", "-B", "-f", path,
		"dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+dir))
}

// tool finds a program of the machine. Where it is missing and we are root, it is
// installed from the Debian package.
func tool(ctx context.Context, program, debian string, log io.Writer) (string, error) {
	path, err := exec.LookPath(program)
	if err == nil {
		return path, nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil || os.Getuid() != 0 {
		return "", fmt.Errorf("%s is missing: install it (Debian: apt-get install %s), or name a running server in the "+
			"environment", program, debian)
	}
	say(log, "installing %s", debian)
	for _, args := range [][]string{{"update", "-qq"}, {"install", "-qq", "--yes", "--no-install-recommends", debian}} {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if err := run(ctx, cmd); err != nil {
			return "", err
		}
	}
	return exec.LookPath(program)
}

// oldestJava is what Kafka 4 brokers need.
const oldestJava = 17

var javaVersion = regexp.MustCompile(`version "(\d+)`)

// findJava answers a Java that is new enough: that of JAVA_HOME, or of the path.
func findJava(ctx context.Context, log io.Writer) (string, error) {
	path := filepath.Join(os.Getenv("JAVA_HOME"), "bin", "java")
	if os.Getenv("JAVA_HOME") == "" || !exists(path) {
		var err error
		if path, err = tool(ctx, "java", "default-jre-headless", log); err != nil {
			return "", err
		}
	}
	out, err := exec.CommandContext(ctx, path, "-version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("running %s -version: %w", path, err)
	}
	match := javaVersion.FindSubmatch(out)
	if match == nil {
		return "", errors.New("java -version does not tell its version")
	}
	if major, err := strconv.Atoi(string(match[1])); err != nil || major < oldestJava {
		return "", fmt.Errorf("%s is Java %s, and Kafka needs %d or newer", path, match[1], oldestJava)
	}
	return path, nil
}
