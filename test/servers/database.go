package servers

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// database is an unpacked MySQL or MariaDB.
type database struct {
	kind   Kind
	root   string // the unpacked tree
	home   string // the folder in the cache that holds it and what is made from it
	loader loader
}

// loopbackRoot lets root in over TCP without a password. The servers listen on the
// loopback interface only and resolve no names.
const loopbackRoot = "CREATE USER root@'127.0.0.1';\n" +
	"GRANT ALL PRIVILEGES ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;\n"

// redoSize keeps a data folder small, and is the size that templates have.
const redoSize = "--innodb-redo-log-capacity=32M"

// findDatabase answers the program, fetched if need be. MySQL is Debian unstable's,
// the only one that has it; MariaDB is the machine's own release's.
func findDatabase(ctx context.Context, kind Kind, log io.Writer) (*database, error) {
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	db := &database{kind: kind, home: filepath.Join(cache, string(kind))}
	db.root = filepath.Join(db.home, "root")
	err = build(ctx, db.root, func(tmp string) error {
		work := filepath.Join(db.home, "apt")
		from, system, err := ownArchive()
		if err != nil {
			return err
		}
		suite, packages := system.codename, []string{"mariadb-server-core", "mariadb-client-core"}
		if kind == KindMySQL {
			suite, packages = "sid", []string{"mysql-server-core", "mysql-client-core"}
			if from, err = debianArchive(ctx, work); err != nil {
				return err
			}
		}
		say(log, "fetching %s from %s %s", kind, from.uri, suite)
		if err := unpackPackages(ctx, work, tmp, from.line(suite), packages...); err != nil {
			return err
		}
		return os.RemoveAll(work)
	})
	if err != nil {
		return nil, err
	}
	db.loader, err = findLoader(db.root)
	return db, err
}

// command runs a program of the tree through the tree's own loader, so that it
// meets the libraries it was built for.
func (db *database) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	for _, dir := range []string{"usr/sbin", "usr/bin"} {
		if path := filepath.Join(db.root, dir, program); exists(path) {
			program = path
		}
	}
	args = append([]string{"--library-path", db.loader.libraries, program}, args...)
	return exec.CommandContext(ctx, db.loader.path, args...)
}

func (db *database) server() string {
	if db.kind == KindMariaDB {
		return "mariadbd"
	}
	return "mysqld"
}

// baseArgs is what every run of the server needs, also those that make its data.
func (db *database) baseArgs(data string) []string {
	usr := filepath.Join(db.root, "usr")
	args := []string{
		"--no-defaults",
		"--datadir=" + data,
		"--basedir=" + usr,
		"--lc-messages-dir=" + filepath.Join(usr, "share/mysql"),
	}
	if os.Getuid() == 0 {
		args = append(args, "--user=root") // both refuse root unless told
	}
	if db.kind == KindMySQL {
		return append(args, "--plugin-dir="+filepath.Join(usr, "lib/mysql/plugin"), "--mysqlx=OFF", "--secure-file-priv=NULL")
	}
	return append(args, "--plugin-dir="+filepath.Join(usr, "lib/mysql/plugin"))
}

// prepare fills an empty data folder. Without args that bear on it, the folder is a
// copy of one that was made once: making one takes seconds.
func (db *database) prepare(ctx context.Context, data string, initArgs []string) error {
	if len(initArgs) > 0 {
		if err := os.MkdirAll(data, 0o750); err != nil {
			return err
		}
		return db.initialize(ctx, data, initArgs)
	}
	recipe, err := db.recipe()
	if err != nil {
		return err
	}
	template := filepath.Join(db.home, fmt.Sprintf("template-%08x", crc32.ChecksumIEEE([]byte(recipe))))
	err = build(ctx, template, func(tmp string) error {
		if err := db.initialize(ctx, tmp, nil); err != nil {
			return err
		}
		if err := db.startOnce(ctx, tmp); err != nil {
			return err
		}
		// Each server makes up its own identity (server_uuid) when it has none.
		err := os.Remove(filepath.Join(tmp, "auto.cnf"))
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		return err
	})
	if err != nil {
		return err
	}
	return copyTree(data, template)
}

func (db *database) initialize(ctx context.Context, data string, initArgs []string) error {
	args := append(db.baseArgs(data), initArgs...)
	sql, err := db.recipe()
	if err != nil {
		return err
	}
	if db.kind == KindMySQL {
		script := data + ".sql"
		if err := os.WriteFile(script, []byte(sql), 0o644); err != nil {
			return err
		}
		defer os.Remove(script)
		args = append(args, "--initialize-insecure", "--init-file="+script, redoSize)
		return run(ctx, db.command(ctx, db.server(), args...))
	}
	cmd := db.command(ctx, db.server(), append(args, "--bootstrap", "--innodb-log-file-size=32M",
		"--max-allowed-packet=8M", "--net-buffer-length=16K")...)
	cmd.Stdin = strings.NewReader(sql)
	return run(ctx, cmd)
}

// startOnce lets MySQL make what it makes at its first start, as keys for TLS, which
// take a second. The servers that are copied from here share them.
func (db *database) startOnce(ctx context.Context, data string) error {
	if db.kind != KindMySQL {
		return nil
	}
	script := data + ".sql"
	if err := os.WriteFile(script, []byte("SHUTDOWN;\n"), 0o644); err != nil {
		return err
	}
	defer os.Remove(script)
	args := append(db.baseArgs(data), "--init-file="+script, "--skip-networking", "--socket=mysqld.sock", "--skip-log-bin",
		redoSize)
	return run(ctx, db.command(ctx, db.server(), args...))
}

// recipe is the SQL that fills a new data folder. MySQL fills it itself but for the
// account. For MariaDB it does what mariadb-install-db does, a shell script that
// would run its programs without the tree's loader.
func (db *database) recipe() (string, error) {
	if db.kind == KindMySQL {
		return loopbackRoot, nil
	}
	var b strings.Builder
	b.WriteString("CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\nSET @skip_auth_anonymous=1;\n")
	for _, names := range [][]string{
		{"mariadb_system_tables.sql", "mysql_system_tables.sql"}, // the name before 10.11 last
		{"mariadb_performance_tables.sql", "mysql_performance_tables.sql"},
		{"mariadb_system_tables_data.sql", "mysql_system_tables_data.sql"},
		{"maria_add_gis_sp_bootstrap.sql"},
	} {
		var text []byte
		var err error
		for _, name := range names {
			if text, err = os.ReadFile(filepath.Join(db.root, "usr/share/mysql", name)); err == nil {
				break
			}
		}
		if err != nil {
			return "", err
		}
		b.Write(text)
		b.WriteString("\n")
	}
	// The tables' data holds root@'127.0.0.1' with all rights and no password.
	return b.String(), nil
}
