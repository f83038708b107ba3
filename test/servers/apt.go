package servers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// archive is where a machine gets its packages from: one entry of apt's sources.
type archive struct {
	uri        string
	suites     []string
	components []string
	signedBy   string // a keyring's path, or empty for apt's own
}

// readArchives reads apt's sources below etc (/etc/apt) in both of their formats,
// sources.list(5). Entries that are off or of sources are left out.
func readArchives(etc string) ([]archive, error) {
	lists, _ := filepath.Glob(filepath.Join(etc, "sources.list.d", "*.list"))
	stanzas, _ := filepath.Glob(filepath.Join(etc, "sources.list.d", "*.sources"))
	var all []archive
	for _, path := range append([]string{filepath.Join(etc, "sources.list")}, append(lists, stanzas...)...) {
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix(path, ".sources") {
			all = append(all, parseStanzas(string(text))...)
		} else {
			all = append(all, parseLines(string(text))...)
		}
	}
	return all, nil
}

// parseLines reads the one-line format: deb [key=value ...] uri suite component...
func parseLines(text string) []archive {
	var all []archive
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		rest, isDeb := strings.CutPrefix(strings.TrimSpace(line), "deb ")
		if !isDeb {
			continue
		}
		var a archive
		rest = strings.TrimSpace(rest)
		if strings.HasPrefix(rest, "[") {
			options, after, _ := strings.Cut(rest[1:], "]")
			rest = after
			for _, option := range strings.Fields(options) {
				if path, found := strings.CutPrefix(option, "signed-by="); found && strings.HasPrefix(path, "/") {
					a.signedBy = path
				}
			}
		}
		fields := strings.Fields(rest)
		if len(fields) < 3 {
			continue
		}
		a.uri, a.suites, a.components = fields[0], fields[1:2], fields[2:]
		all = append(all, a)
	}
	return all
}

// parseStanzas reads the deb822 format: stanzas of fields, parted by empty lines.
func parseStanzas(text string) []archive {
	var all []archive
	fields := map[string]string{}
	flush := func() {
		defer clear(fields)
		if !slices.Contains(strings.Fields(fields["types"]), "deb") || strings.EqualFold(fields["enabled"], "no") {
			return
		}
		for _, uri := range strings.Fields(fields["uris"]) {
			a := archive{uri: uri, suites: strings.Fields(fields["suites"]), components: strings.Fields(fields["components"])}
			// The field may hold the key itself; then apt's own keyrings must do.
			if path := fields["signed-by"]; strings.HasPrefix(path, "/") {
				a.signedBy = path
			}
			all = append(all, a)
		}
	}
	last := ""
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.TrimSpace(line) == "":
			flush()
		case strings.HasPrefix(line, "#"):
		case line[0] == ' ' || line[0] == '\t':
			fields[last] += " " + strings.TrimSpace(line)
		default:
			name, value, _ := strings.Cut(line, ":")
			last = strings.ToLower(name)
			fields[last] = strings.TrimSpace(value)
		}
	}
	flush()
	return all
}

// release is what /etc/os-release says of the machine.
type release struct{ id, codename string }

func readRelease(path string) (release, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return release{}, fmt.Errorf("finding out the system: %w", err)
	}
	var r release
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		value = strings.Trim(value, `"`)
		switch name {
		case "ID":
			r.id = value
		case "VERSION_CODENAME":
			r.codename = value
		}
	}
	return r, nil
}

// mainArchive finds the archive that the machine's own release comes from.
func mainArchive(all []archive, r release) (archive, bool) {
	for _, a := range all {
		if slices.Contains(a.suites, r.codename) && slices.Contains(a.components, "main") {
			return a, true
		}
	}
	// A container image without a code name, or on testing or unstable.
	for _, a := range all {
		if strings.HasSuffix(strings.TrimRight(a.uri, "/"), "/"+r.id) && slices.Contains(a.components, "main") {
			return a, true
		}
	}
	return archive{}, false
}

// line is the archive as a line of sources.list, for one suite.
func (a archive) line(suite string) string {
	options := ""
	if a.signedBy != "" {
		options = "[signed-by=" + a.signedBy + "] "
	}
	return fmt.Sprintf("deb %s%s %s %s\n", options, a.uri, suite, strings.Join(a.components, " "))
}

// ownArchive answers where this machine's own release comes from.
func ownArchive() (archive, release, error) {
	r, err := readRelease("/etc/os-release")
	if err != nil {
		return archive{}, r, err
	}
	all, err := readArchives("/etc/apt")
	if err != nil {
		return archive{}, r, err
	}
	own, found := mainArchive(all, r)
	if !found {
		return archive{}, r, errors.New("apt's sources name no archive of this system")
	}
	return own, r, nil
}

// debianArchive answers where Debian's packages come from: the machine's own archive
// or, where that is another system's, the one that the environment names. work is a
// folder for what it needs to find out.
func debianArchive(ctx context.Context, work string) (archive, error) {
	own, r, err := ownArchive()
	if err != nil {
		return archive{}, err
	}
	mirror := os.Getenv("BINLOG_OUTBOX_DEBIAN_MIRROR")
	switch {
	case mirror != "":
		keyring, err := debianKeyring(ctx, work, own, r)
		return archive{uri: mirror, components: []string{"main"}, signedBy: keyring}, err
	case r.id != "debian":
		return archive{}, fmt.Errorf("it comes from Debian, and this is %s: name a Debian archive in "+
			"BINLOG_OUTBOX_DEBIAN_MIRROR, or a running server in the environment", r.id)
	}
	return own, nil
}

// debianKeyring answers the keyring that Debian's archives are checked with. Systems
// made from Debian have it as a package, which their own keys vouch for.
func debianKeyring(ctx context.Context, work string, own archive, r release) (string, error) {
	const path = "usr/share/keyrings/debian-archive-keyring.gpg"
	if exists("/" + path) {
		return "/" + path, nil
	}
	root := filepath.Join(work, "keyring")
	err := build(ctx, root, func(tmp string) error {
		return unpackPackages(ctx, filepath.Join(work, "keyring-apt"), tmp, own.line(r.codename), "debian-archive-keyring")
	})
	return filepath.Join(root, path), err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// unpackPackages downloads packages with all that they depend on and unpacks them
// into root. It never touches the system: apt gets lists, a cache and an empty
// database of installed packages below work, so no right of root is needed, and
// nothing of the machine's own libraries is counted on.
func unpackPackages(ctx context.Context, work, root, source string, packages ...string) error {
	for _, tool := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("unpacking Debian packages: %w", err)
		}
	}
	for _, dir := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(work, dir), 0o755); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{"sources.list": source, "status": ""} {
		if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	options := []string{"-qq"}
	for _, option := range []string{
		"Dir::Etc::SourceList=" + filepath.Join(work, "sources.list"),
		"Dir::Etc::SourceParts=/dev/null",
		"Dir::State::Lists=" + filepath.Join(work, "lists"),
		"Dir::State::status=" + filepath.Join(work, "status"),
		"Dir::Cache=" + filepath.Join(work, "cache"),
		"Debug::NoLocking=1", // the lock is the system's; ours is held by the caller
		"Acquire::Languages=none",
		"Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false",
		"Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false",
		"Acquire::Retries=3",
		"APT::Sandbox::User=root", // root's cache can't be read by apt's own user
	} {
		options = append(options, "-o", option)
	}
	apt := func(args ...string) error {
		return run(ctx, exec.CommandContext(ctx, "apt-get", append(slices.Clone(options), args...)...))
	}
	if err := apt("update"); err != nil {
		return err
	}
	if err := apt(append([]string{"install", "--download-only", "--no-install-recommends", "--yes"},
		packages...)...); err != nil {
		return err
	}
	debs, err := filepath.Glob(filepath.Join(work, "cache", "archives", "*.deb"))
	if err != nil {
		return err
	}
	if len(debs) == 0 {
		return fmt.Errorf("downloading %s: nothing came", strings.Join(packages, ", "))
	}
	for _, deb := range debs {
		if err := run(ctx, exec.CommandContext(ctx, "dpkg-deb", "-x", deb, root)); err != nil {
			return err
		}
	}
	return nil
}
