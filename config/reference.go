package config

import (
	"fmt"
	"strings"
)

//go:generate go test -run ^TestReferencePageIsCurrent$ . -write

// Example returns the smallest configuration that runs: one node, one outbox.
func Example() string {
	return `node:
  data_dir: /var/lib/binlog-outbox
connectors:
  - name: orders-outbox
    source:
      host: mysql.example.internal
      user: outbox_cdc
      password: ${env:MYSQL_PASSWORD}
      table: shop.outbox
      start: current
    kafka:
      brokers: [kafka-1.example.internal:9092]
`
}

// lineWidth is where the comments of the reference are wrapped.
const lineWidth = 100

// Reference returns a complete configuration in YAML: every setting with its
// default, what it does, and the Debezium or Kafka Connect key that it replaces.
// Settings without a default stand in comments, with an example.
func Reference() string {
	var b strings.Builder
	b.WriteString("# Every setting with its default. A line that begins with \"#key:\" is an example of a\n" +
		"# setting that has no default. Texts may hold ${file:PATH:KEY}, ${file:PATH}, ${dir:PATH:FILE}\n" +
		"# and ${env:NAME}; an environment variable BINLOG_OUTBOX_<PATH> wins over the file.\n")
	for _, f := range fields() {
		f.yaml(&b)
	}
	return b.String()
}

// yaml writes the setting or section with its comments.
func (f field) yaml(b *strings.Builder) {
	parts := strings.Split(f.path, ".")
	indent, first := "", ""
	for _, p := range parts[:len(parts)-1] {
		indent += "  "
		if strings.HasSuffix(p, "[]") {
			indent += "  "
		}
	}
	key := parts[len(parts)-1]
	// The first setting of a list's element carries the dash.
	if len(parts) > 1 && strings.HasSuffix(parts[len(parts)-2], "[]") &&
		(key == "name" || f.path == "connectors[].columns.changes[].columns") {
		first = indent[:len(indent)-2] + "- "
	}
	if len(parts) == 1 {
		b.WriteByte('\n')
	}
	comment := indent
	if first != "" {
		comment = indent[:len(indent)-2]
	}
	switch {
	case strings.HasSuffix(f.path, ".groups") || strings.Contains(f.path, ".groups[].") ||
		strings.HasSuffix(f.path, ".changes") || strings.Contains(f.path, ".changes[]."):
		// A group or a change is an example as a whole.
		indent, comment = "#"+indent, "#"+comment
		if first != "" {
			first = "#" + first
		}
	case f.leaf() && f.def == "" && !f.required && !f.shown && (f.example != "" || defaultText(f) == `""`):
		indent += "#"
	}
	writeComment(b, comment, f.comment())
	if first != "" {
		indent = first
	}
	switch {
	case !f.leaf():
		fmt.Fprintf(b, "%s%s:\n", indent, key)
	default:
		value := f.def
		if value == "" {
			value = f.example
		}
		if value == "" {
			value = defaultText(f)
		}
		fmt.Fprintf(b, "%s%s: %s\n", indent, key, value)
	}
}

func (f field) comment() string {
	text := f.doc
	if len(f.enum) > 1 {
		text += " One of: " + strings.Join(nonEmpty(f.enum), ", ") + "."
	}
	if f.required {
		text += " Required."
	}
	if old := f.replaced(); len(old) > 0 {
		text += " Replaces " + strings.Join(old, ", ") + "."
	}
	return text
}

func nonEmpty(list []string) []string {
	var out []string
	for _, s := range list {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

func writeComment(b *strings.Builder, indent, text string) {
	line := indent + "#"
	for enumValue := range strings.FieldsSeq(text) {
		if len(line)+1+len(enumValue) > lineWidth && line != indent+"#" {
			b.WriteString(line + "\n")
			line = indent + "#"
		}
		line += " " + enumValue
	}
	b.WriteString(line + "\n")
}

// ReferencePage returns the reference as a page in Markdown.
func ReferencePage() string {
	var b strings.Builder
	b.WriteString(strings.Replace(pageIntro, "{example}", Example(), 1))
	for _, section := range fields() {
		if section.leaf() {
			continue
		}
		title := strings.ReplaceAll(section.path, "[]", "")
		level := strings.Repeat("#", min(4, 2+strings.Count(title, ".")))
		fmt.Fprintf(&b, "\n%s %s\n\n%s\n", level, title, section.doc)
		rows := 0
		for _, f := range fields() {
			if !f.leaf() || strings.TrimSuffix(f.section(), "[]") != section.path {
				continue
			}
			if rows++; rows == 1 {
				b.WriteString("\n| Key | Type | Default | Meaning | In Debezium or Kafka Connect |\n|---|---|---|---|---|\n")
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", code(f.name()), f.typeText(), f.defaultCell(), cell(f.meaning()),
				replacesCell(f.replaced()))
		}
	}
	return b.String()
}

const pageIntro = "<!-- Written by \"go generate ./config\" from the table in config/fields*.go. -->\n\n" +
	"# Configuration\n\n" +
	"One YAML file, named by `--config` or `BINLOG_OUTBOX_CONFIG`. Unknown keys are errors. `binlog-outbox validate` " +
	"checks a file, `binlog-outbox config reference` prints\n" +
	"this page as one commented file, `binlog-outbox config show --effective` what is in force, and `binlog-outbox " +
	"config convert` turns a Debezium connector over.\n\n" +
	"The smallest file:\n\n```yaml\n{example}```\n\n" +
	"**Environment.** A variable wins over the file: `BINLOG_OUTBOX_` and the path in capitals, as in " +
	"`BINLOG_OUTBOX_NODE_DATA_DIR` or `BINLOG_OUTBOX_CONNECTORS_0_SOURCE_PASSWORD`.\n" +
	"Without `CONNECTORS_<n>_` it counts for every connector (`BINLOG_OUTBOX_KAFKA_BROKERS`). `BINLOG_OUTBOX_DATA_DIR` " +
	"and `BINLOG_OUTBOX_DELIVERY` are short for `node.data_dir` and\n" +
	"`kafka.delivery`. Lists are separated by commas, pairs written `a=1,b=2`, an empty variable counts as not set. " +
	"Flags win over variables.\n\n" +
	"**References.** A value may refer to what stands elsewhere, and is then shown as the reference and not as what it " +
	"stands for: by `config show`, in messages about the configuration, and in the state and the log of its connector. " +
	"Passwords, tokens and keys are read again at each connect. Files are regular ones of up to 1 MiB. What connectors " +
	"that come over the REST API may refer to say `admin.secret_paths` and `admin.secret_variables`.\n\n" +
	"| Reference | Stands for |\n|---|---|\n" +
	"| `${file:PATH:KEY}` | the value of KEY in a Java properties file |\n" +
	"| `${file:PATH}` | the whole file, without a newline at its end |\n" +
	"| `${dir:PATH:FILE}` | the file FILE in the directory PATH, likewise |\n" +
	"| `${env:NAME}` | an environment variable |\n\n" +
	"**Types.** Durations are written as `300ms`, `30s`, `5m`; sizes as `64MiB`, `1GB` or a number of bytes.\n"

func (f field) name() string { return f.path[strings.LastIndexByte(f.path, '.')+1:] }

func (f field) section() string { return strings.TrimSuffix(f.path, "."+f.name()) }

func (f field) typeText() string {
	t := typeOf(f.path)
	switch {
	case len(f.enum) > 0:
		return "enum"
	case t == durationType:
		return "duration"
	case t == secretType:
		return "secret"
	case wanted(t) == "a number of bytes such as 64MiB":
		return "size"
	case wanted(t) == "true or false":
		return "boolean"
	case strings.HasSuffix(wanted(t), "number") || strings.HasPrefix(wanted(t), "a whole number"):
		return "number"
	default:
		return strings.TrimPrefix(wanted(t), "a ")
	}
}

func (f field) defaultCell() string {
	if f.required {
		return "*required*"
	}
	return code(defaultText(f))
}

func (f field) meaning() string {
	text := f.doc
	if len(f.enum) > 1 {
		list := nonEmpty(f.enum)
		for i := range list {
			list[i] = code(list[i])
		}
		text += " One of " + strings.Join(list, ", ") + "."
	}
	return text
}

func replacesCell(parts []string) string {
	var out []string
	for _, part := range parts {
		if strings.Contains(part, " ") {
			out = append(out, part)
		} else {
			out = append(out, code(part))
		}
	}
	return strings.Join(out, ", ")
}

// code writes text as code in a cell of a table.
func code(text string) string { return "`" + strings.ReplaceAll(text, "|", `\|`) + "`" }

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
